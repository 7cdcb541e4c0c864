"""From runs to a verdict: observations, questions, structural changes, rows, the suite.

In: runs of both sides and a policy.
Out: a `GateResult`, and an `Outcome` for those who show it.
"""
