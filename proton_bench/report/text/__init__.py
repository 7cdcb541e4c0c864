"""One file for each report: its lines on the terminal, its JSON document, its Markdown.

In: results.
Out: renderables for rich, plain dicts with a `schema` each, and files for CI.
"""
