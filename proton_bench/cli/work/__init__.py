"""What commands do once their options are read; loaded when a command is called.

In: values of options.
Out: what is printed, files, and an exit code.
"""
