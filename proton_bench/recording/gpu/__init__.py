"""What NVIDIA's management library says of GPUs: facts, and clocks and memory over time.

In: the devices that a process uses.
Out: facts for provenance and counters for timelines.
"""
