"""Profiles: the call-path tree of a run in flat arrays, with devices and provenance.

In: rows from decoders and from builders.
Out: a `Profile`, used by all readers. This room opens no files.
"""
