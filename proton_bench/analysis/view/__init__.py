"""Selects the shown rows: by name, threshold and depth, flat tables, data frames.

In: a profile and a selection.
Out: a `MetricTree`, a kernel table, or a pandas data frame.
"""
