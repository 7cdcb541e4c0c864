"""Recording, in the process of the target: sessions, scopes, hooks, and the runner around it.

In: what a program, its options and its environment ask for.
Out: files; only `cli` and `pytest_plugin` know this wing and the reading one.
"""
