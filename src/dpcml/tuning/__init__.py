"""Search for hyper-parameters: spaces, samplers, and trials on the validation part."""
