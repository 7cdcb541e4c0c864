"""Runs commands in turn and in fresh processes, keeps every run, and has them judged.

In: two commands or revisions.
Out: kept runs and an `Outcome`.
"""
