"""The statistics of the gate, one method per file with its formula and source.

In: one number per process and path.
Out: decisions, locations, and what keeps from deciding.
"""
