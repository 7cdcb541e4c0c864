"""Bytes to a profile and back: formats, their registry, limits of reading.

In: the name of a file and its bytes.
Out: a `Profile`, or the bytes of one; with a room for each family of formats.
"""
