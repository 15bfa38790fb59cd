"""Evaluate: run a model over a suite of questions, fast and resumable, into logs to be mapped."""
