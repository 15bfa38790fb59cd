"""Statistics of paired outcomes: pure functions on arrays, numpy and scipy only.

`transitions` says what is estimated, `intervals` how sure it is, `tests` whether it can be chance,
`power` what could have been seen.
"""
