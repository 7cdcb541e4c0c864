"""Inside kernels: PC samples, stall reasons, lines of source, scopes.

In: a profile with samples or scopes inside kernels.
Out: hot lines, ratios of stalls, cycles, and the cost of recording them.
"""
