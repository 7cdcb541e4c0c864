"""The work of commands that run a program several times, after their options are read.

In: values of options.
Out: runs, text on standard output, exit codes.
"""
