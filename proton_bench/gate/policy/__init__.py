"""Policies: thresholds, other keys, selectors of paths.

In: a policy file and options.
Out: a `Policy`, and its checks for each path.
"""
