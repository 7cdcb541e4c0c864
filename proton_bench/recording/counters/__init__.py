"""Hardware counters: how busy the units of a GPU were, for kernels and for the whole run.

In: bursts of samples with the kernels that ran meanwhile; readings of NVIDIA's management library.
Out: estimates with their variances on the rows of kernels; means of each device for the provenance;
counters for timelines.
"""
