"""Kernels whose bottleneck is known by construction, and whether `proton why` names it.

In: a GPU, and a recording of the program with counters.
Out: a table of labels and verdicts.
"""
