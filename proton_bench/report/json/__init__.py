"""Results as versioned JSON documents.

In: results.
Out: plain dicts with a `schema` each.
"""
