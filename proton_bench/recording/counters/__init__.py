"""Hardware counters: which metrics are read, and what they say of each call path and of the run.

In: bursts of samples with the kernels that ran meanwhile, and readings of NVIDIA's library.
Out: columns of rows with their variances, means of devices, ceilings, counters for timelines.
"""
