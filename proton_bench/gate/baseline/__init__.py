"""Runs that are kept to compare with: files, folders of them, and the store.

In: words of a command line, or runs to keep.
Out: sides of runs; a store that survives links, kills and damage.
"""
