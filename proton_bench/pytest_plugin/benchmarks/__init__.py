"""Benchmarks in every process that runs tests: marker, options, fixture, records.

In: marked tests.
Out: one record per benchmark, and rows of the profile.
"""
