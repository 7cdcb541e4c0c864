"""The statistics of the gate, with their formulas and sources.

In: one number per process and path.
Out: decisions, locations, and what keeps from deciding.
"""
