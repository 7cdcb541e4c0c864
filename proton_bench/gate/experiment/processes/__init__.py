"""The processes of an experiment: commands, environments, worktrees, turns, signals.

In: a command as `proton run` would execute it.
Out: one finished process, or a clean end.
"""
