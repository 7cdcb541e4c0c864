"""Reports: renderables and documents made from results. The caller prints them.

In: results of `analysis` and `gate`.
Out: text, HTML, JSON and files for CI; a room for each.
"""
