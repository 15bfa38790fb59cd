"""Merging: two checkpoints in, one out, and the sweep that finds the best."""
