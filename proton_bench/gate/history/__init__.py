"""Series of values over recorded experiments, and the steps in them.

In: entries of the baseline store, or files and folders of runs, in order of time.
Out: series per path, metric and machine; their steps; the steps that are not acknowledged.
"""
