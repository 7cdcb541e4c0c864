"""Bytes to a profile and back: formats, their registry, the budget of decoding.

In: the name of a file and its bytes.
Out: a `Profile`, or the bytes of one; with a room for each family of formats.
"""
