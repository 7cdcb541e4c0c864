"""Support for all rooms: files and pipes, untrusted text, units, time limits.

In: names of files, untrusted text, numbers.
Out: complete files, text that is safe to show.
"""
