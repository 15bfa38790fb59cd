"""Run what a model wrote behind walls, or not at all: see `programs`, `boundary` and `inside`."""
