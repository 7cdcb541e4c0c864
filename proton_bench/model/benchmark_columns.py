"""Under which names profiles hold benchmarks: who writes them and who reads them say the same."""

from __future__ import annotations

__all__ = [
    "BENCHMARK",
    "CALLS",
    "CHOSEN_TESTS",
    "CLOCK",
    "CPU_ROUND",
    "FLUSH",
    "GPU_ROUND",
    "REPLICATE",
    "ROUNDS",
    "THRESHOLD",
    "WARM_UP",
]

# Metrics of the node in which the rounds of a benchmark ran: its id, what counts as a repetition,
# which clock is gated, what its marker allows, rounds and calls in all of them, and times for one
# call.
BENCHMARK = "benchmark"
REPLICATE = "replicate"
CLOCK = "clock"
THRESHOLD = "gate_threshold"
ROUNDS = "rounds"
CALLS = "calls"
CPU_ROUND = "cpu_round (ns)"
GPU_ROUND = "gpu_round (ns)"

# Names of the nodes beside that of the rounds: calls before them, and emptied caches of the GPU.
WARM_UP = "warm-up"
FLUSH = "<flush>"

# Of the provenance: true where only some of the tests were chosen; others are not missed then.
CHOSEN_TESTS = "chosen_tests"
