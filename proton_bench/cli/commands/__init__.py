"""One module per command of `proton`.

In: words of the command line.
Out: what is printed, and an exit code.
"""
