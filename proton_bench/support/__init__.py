"""Support for all rooms: files and pipes, foreign text, units, time limits.

In: names of files, foreign text, numbers.
Out: complete files, text that is safe to show.
"""
