"""The numbers of a profile: metric columns, distributions of samples, how busy devices were.

In: one value or sample per row.
Out: columns, quantiles with their known error, and rules that they must satisfy.
"""
