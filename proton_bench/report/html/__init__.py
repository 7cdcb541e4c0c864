"""One HTML file that needs nothing else, no network above all.

In: a profile or a comparison.
Out: a page, and what a notebook shows.
"""
