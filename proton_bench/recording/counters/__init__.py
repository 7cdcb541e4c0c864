"""Hardware counters: how busy the units of a GPU were, for kernels and for the whole run.

In: readings of NVIDIA's management library.
Out: means of each device for the provenance, counters for timelines.
"""
