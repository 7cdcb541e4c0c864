"""Recording, in the process of the target: sessions, scopes, hooks, and the runner around it.

In: a program, its options and its environment.
Out: files; only `cli` and `pytest_plugin` use both this wing and the reading one.
"""
