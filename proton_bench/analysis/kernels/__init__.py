"""Inside kernels and operators: PC samples, stall reasons, lines of source, scopes, counters.

In: a profile with samples, counters or scopes inside kernels.
Out: hot lines, ratios of stalls and counters, cycles, and the cost of recording them.
"""
