"""Decides for each call path whether a program got slower, bisects, and finds steps in a history.

In: two sides of runs, baselines or commands to record, and a policy.
Out: a verdict with reasons. Start with `gate_recorded`, `gate_fresh` or `PairedExperiment`.
"""
