"""`.pftrace`: timelines in Perfetto's format, read, cut into slices and merged.

In: packets, plain or compressed.
Out: call paths, slices, or one merged timeline.
"""
