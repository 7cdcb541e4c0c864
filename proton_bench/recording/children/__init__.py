"""Follows a recorded program into the Python processes that it starts.

In: an environment that children inherit.
Out: a session in each child, and profiles for the parent's files.
"""
