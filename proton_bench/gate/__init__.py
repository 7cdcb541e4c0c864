"""Decides whether a program got slower: by call path, and says when it does not know.

In: two sides of runs and a policy.
Out: a verdict with reasons; `judge` is the way in.
"""
