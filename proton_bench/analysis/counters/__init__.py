"""Counters of other tools, joined with the call paths of a profile.

In: CSV of Nsight Compute, rocprof-compute or rocprofv3.
Out: metrics of rows, and doubtful matches.
"""
