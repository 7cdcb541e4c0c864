"""Recording, in the process of the target: sessions, scopes, hooks, ranks, the runner.

In: a program, its options and its environment.
Out: files; only `cli` and `pytest_plugin` use both this wing and the reading one.
"""
