"""Many images through a model: a folder on this machine, or a collection of any size on a Ray cluster."""
