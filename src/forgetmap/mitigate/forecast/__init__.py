"""Forecast: which items a training will cost, before it is paid for."""
