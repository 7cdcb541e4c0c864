"""Computes from profiles with pure functions, in one room for each kind of question.

In: a `Profile`, or a `Run`: one with a name.
Out: trees, tables and comparisons that reports show.
"""
