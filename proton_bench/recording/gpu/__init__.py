"""Reads NVIDIA's management library: facts of GPUs, and clocks and memory over time.

In: the devices that a process uses.
Out: facts for provenance and counters for timelines.
"""
