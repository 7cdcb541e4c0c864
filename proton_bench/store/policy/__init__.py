"""What a store keeps, how long, and what is hidden in it.

In: the file ``policy.toml`` of a store, and profiles that are added or old.
Out: profiles without what is hidden, and sums in place of old profiles.
"""
