"""Counters that other tools measured, laid over the call paths of a profile.

In: CSV of Nsight Compute, rocprof-compute or rocprofv3.
Out: metrics of rows, and what is doubtful about them.
"""
