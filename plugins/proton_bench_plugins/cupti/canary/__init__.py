"""The canary of NVIDIA GPUs: a kernel whose time shows the clock of the multiprocessors.

In: a CUDA driver that the target has loaded.
Out: cycles and nanoseconds of its launches.
"""
