"""What a profile is: the call-path tree of a run in flat arrays, with devices and provenance.

In: rows from decoders and from builders.
Out: a `Profile`, which everything that reads works on; no file is opened here.
"""
