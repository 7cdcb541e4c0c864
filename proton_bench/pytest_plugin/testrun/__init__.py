"""Test runs in a profile: nodes of tests, parts of workers, a summary.

In: hooks of pytest, also in workers of xdist.
Out: one profile in the order of the tests.
"""
