"""Timelines in Chrome's trace format: ours, upstream's and Kineto's of torch.profiler.

In: JSON events, plain or compressed.
Out: call paths, slices, and Kineto files.
"""
