"""Measures what the rows cover of a run: launches, busy and idle time, the profiler's own cost.

In: a profile.
Out: numbers for the head of every report.
"""
