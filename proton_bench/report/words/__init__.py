"""Sentences and columns that every form of a report shares.

In: profiles, comparisons and gates.
Out: text, column by column, with units.
"""
