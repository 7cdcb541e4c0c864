"""How much of a run its rows account for: launches, busy and idle time, the profiler's own cost.

In: a profile.
Out: numbers for the head of every report.
"""
