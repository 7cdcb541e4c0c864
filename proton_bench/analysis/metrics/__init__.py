"""Values of rows: recorded and derived metrics, quantiles, peak rates, roofline, occupancy.

In: a profile and the name of a metric, such as `time/ms`.
Out: one value per row, or none.
"""
