"""Names and rows that people can read: kernels, Python frames, layers.

In: the rows and names of a profile, as they were recorded.
Out: rows with library frames and equal layers folded, and for each name a text of its own.
"""
