"""How kernels get records: passes in Triton's pipelines, stages, keys of its caches."""
