"""Runs commands in turn and in fresh processes, keeps every run, and judges them.

In: two commands or revisions.
Out: kept runs and an `Outcome`.
"""
