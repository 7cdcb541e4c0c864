"""Decides for each call path whether a program got slower, or says that it cannot tell.

In: two sides of runs and a policy.
Out: a verdict with reasons. Start with `gate_result`.
"""
