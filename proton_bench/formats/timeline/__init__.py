"""What readers of timelines share: ranges, launches, device work, devices, slices.

In: events of any timeline.
Out: call paths by nesting and by correlation, and slices one by one.
"""
