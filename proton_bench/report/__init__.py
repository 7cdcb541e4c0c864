"""Reports: renderables and documents made of results. They print nothing; the caller does.

In: results of `analysis` and `gate`.
Out: text, HTML, JSON and files for CI; a room for each.
"""
