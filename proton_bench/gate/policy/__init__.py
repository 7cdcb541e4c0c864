"""What a gate asks: thresholds, levels, floors, selectors of paths, rules of plugins.

In: a policy file and options.
Out: a `Policy`, and the checks that it asks of each path.
"""
