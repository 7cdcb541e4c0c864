"""The work of commands after their options are read; loaded when a command runs.

In: values of options.
Out: what is printed, files, and an exit code.
"""
