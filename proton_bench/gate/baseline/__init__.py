"""Stored runs to compare with: files, folders of files, and the store.

In: words of a command line, or runs to save.
Out: sides of runs; a store that withstands links, kills and damage.
"""
