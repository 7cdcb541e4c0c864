"""Facts about the machine: canary kernels, fingerprints, the tick of its clock.

In: runs of unchanged programs.
Out: variances and warnings for the judge.
"""
