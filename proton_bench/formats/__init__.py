"""Bytes to a profile and back: what a format is, the registry of formats, the budget of decoding.

In: the name of a file and its bytes.
Out: a `Profile`, or the bytes of one; a room below for each family of formats.
"""
