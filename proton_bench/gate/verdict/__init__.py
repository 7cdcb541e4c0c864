"""From runs to a verdict: observations, checks, structural changes, rows, the overall verdict.

In: runs of both sides and a policy.
Out: a `GateResult`, and an `Outcome` for reports.
"""
