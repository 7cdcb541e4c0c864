"""Adds records to kernels: passes in Triton's pipelines, stages, keys of its caches."""
