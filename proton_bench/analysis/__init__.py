"""What can be computed from profiles; pure functions, a room for each kind of question.

In: a `Profile`, or a `Run`: one with a name.
Out: trees, tables and comparisons that reports show.
"""
