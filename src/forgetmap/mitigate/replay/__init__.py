"""Replay: what to train on again, and what must never be in it."""
