"""Commands that run a program several times.

In: the words after the command's name.
Out: options for the work of the command in `work`.
"""
