"""What `proton gate`, `ab` and `noise` share: options, sides, outputs.

In: options.
Out: policies, sides of runs, files.
"""
