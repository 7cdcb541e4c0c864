"""Times a function in rounds: warm-up, calibration, a timer of the CPU, or the kernels of a GPU.

In: a function and a plan.
Out: a `Measurement`, its record and rows, a `BenchResult`.
"""
