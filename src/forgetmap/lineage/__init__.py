"""Lineage: forgetting across a whole pipeline of checkpoints, and along one training run."""
