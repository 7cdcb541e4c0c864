"""Sessions: what is recorded, by which collectors, and into which files.

In: options, and calls of `start`, `deactivate`, `finalize`.
Out: the files of a session, written by the native module.
"""
