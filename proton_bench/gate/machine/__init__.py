"""Facts about the machine: canary kernels, fingerprints, the tick of its clock.

In: runs, and this machine.
Out: facts and warnings for the judge.
"""
