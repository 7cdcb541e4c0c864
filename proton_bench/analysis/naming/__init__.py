"""Names and rows that people can read: kernels, Python frames, layers.

In: the rows and names of a profile, as they were recorded.
Out: the same rows with library frames and equal layers folded, and a text for each name. Two
different names never become the same text; what compares names uses the recorded ones.
"""
