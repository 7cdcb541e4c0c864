"""How much of a run the rows cover: launches, busy and idle time, the profiler's own cost.

In: a profile.
Out: numbers for the head of every report.
"""
