"""Drawings of the page beside the flame graph: the roofline, and devices over time.

In: a profile, or a timeline.
Out: geometry and texts; the page draws them.
"""
