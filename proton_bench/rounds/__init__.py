"""Times a function in rounds: warm-up, calibration, a timer of the CPU or of a GPU.

In: a function and a plan.
Out: a `Measurement`.
"""
