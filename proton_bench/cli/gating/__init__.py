"""What `proton gate` and its relatives share: options, sides, outputs.

In: options.
Out: policies, sides of runs, files.
"""
