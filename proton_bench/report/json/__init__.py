"""Results as versioned JSON documents.

In: what a terminal would show.
Out: plain dicts with a `schema` each.
"""
