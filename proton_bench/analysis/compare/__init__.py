"""What changed between two sets of runs: rows found on both sides, ranked and explained.

In: two sides of runs.
Out: a `Comparison`.
"""
