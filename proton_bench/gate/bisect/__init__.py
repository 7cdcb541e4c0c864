"""Searches the first revision that is slower, with noisy measurements.

In: two revisions or versions, and a command.
Out: kept runs and a `BisectResult`.
"""
