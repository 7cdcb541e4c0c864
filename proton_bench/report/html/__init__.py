"""One self-contained HTML file.

In: a profile or a comparison.
Out: a page, or HTML for a notebook.
"""
