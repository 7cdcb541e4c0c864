"""Other reports on the terminal: diff, gate, source, counters, stragglers, baselines.

In: results.
Out: renderables for rich, in the colours of `theme`.
"""
