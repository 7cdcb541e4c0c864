"""SQLite exports of Nsight Systems.

In: a database that is opened read-only and checked.
Out: a `Profile` of its kernels, copies and NVTX ranges.
"""
