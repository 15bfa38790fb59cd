"""Statistics of paired outcomes: pure functions on arrays, numpy and scipy only.

`lost` says what is estimated, `moments` and `spread` how sure it is, `tests` whether it can be
chance, `power` what could have been seen.
"""
