"""Changes between two sets of runs: matched rows, ranked and explained.

In: two sides of runs.
Out: a `Comparison`.
"""
