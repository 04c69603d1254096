"""Models trained with PyTorch; torch is imported when one of them is fitted or scores."""
