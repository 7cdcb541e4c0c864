"""Commands on timelines: merging them, and export to Kineto's form.

In: timeline files.
Out: one file.
"""
