"""Evaluate: run a model over a suite of questions, fast, resumable, into logs that can be mapped."""
