"""Which rows are shown: selection by name, threshold and depth, flat tables, data frames.

In: a profile and a selection.
Out: a `MetricTree`, a kernel table, or a pandas data frame.
"""
