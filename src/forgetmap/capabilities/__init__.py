"""Capabilities: what a model can do, will do, and how it does it; scored from stored answers."""
