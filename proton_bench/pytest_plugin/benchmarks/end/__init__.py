"""The end of a run with benchmarks: repetitions, the gate, times.

In: records of all processes.
Out: the verdict, and pytest's exit code.
"""
