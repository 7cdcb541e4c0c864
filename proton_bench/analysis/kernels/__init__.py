"""What happened inside kernels: PC samples, stall reasons, lines of source, scopes.

In: a profile with samples or scopes inside kernels.
Out: hot lines, ratios of stalls, cycles, and what recording them cost.
"""
