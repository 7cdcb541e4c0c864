"""Hardware counters of kernels: which metrics are sampled, and what they say of each call path.

In: bursts of samples with the kernels that ran meanwhile, from a native session.
Out: columns of estimates with their variances, on the rows of kernels; counters for timelines.
"""
