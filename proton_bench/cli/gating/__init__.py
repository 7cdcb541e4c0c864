"""Options, sides and outputs that `proton gate` and `ab` share.

In: options.
Out: policies, sides of runs, files.
"""
