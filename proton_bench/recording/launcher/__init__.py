"""Runs a target under a session, as the interpreter itself would run it.

In: the options of `proton run`, across an exec.
Out: the target's own exit code, and finished files.
"""
