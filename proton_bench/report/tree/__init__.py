"""A call-path tree on the terminal: columns, bars, names, legend.

In: a `MetricTree`.
Out: lines for rich.
"""
