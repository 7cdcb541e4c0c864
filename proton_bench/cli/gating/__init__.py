"""Options, sides and outputs that `proton gate`, `ab` and `noise` share.

In: options.
Out: policies, sides of runs, files.
"""
