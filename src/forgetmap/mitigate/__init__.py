"""Levers against forgetting, wired to the map: merging, replay, anchored training, advice."""
