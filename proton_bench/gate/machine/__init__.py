"""What is known of the machine: stored noise, canaries, fingerprints, the tick of its clock.

In: runs of unchanged programs.
Out: variances and warnings for the judge.
"""
