"""The paper, reproduced: studies that put our figures beside the published ones."""
