"""Finds what works in this installation, what is missing, and how to fix it.

In: the machine, its packages, drivers, GPUs and plugins, and files that a user names.
Out: a `Diagnosis` of sections and findings, for `proton doctor`.
"""
