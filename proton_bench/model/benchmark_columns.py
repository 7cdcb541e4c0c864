"""Names of benchmark columns in profiles, shared by writers and readers."""

from __future__ import annotations

# Metrics of the node in which the rounds of a benchmark ran: its id, what counts as a repetition,
# which clock is gated, what its marker allows, rounds and calls in all of them, and times for one
# call.
BENCHMARK = "benchmark"
REPLICATE_COLUMN = "replicate"
CLOCK = "clock"
THRESHOLD = "gate_threshold"
ROUNDS = "rounds"
CALLS = "calls"
CPU_ROUND = "cpu_round (ns)"
GPU_ROUND = "gpu_round (ns)"

# Names of the nodes beside that of the rounds: calls before them, and emptied caches of the GPU.
WARM_UP = "warm-up"
FLUSH = "<flush>"

# Key of the provenance: true if only some tests were selected, so that others do not count as
# missing.
CHOSEN_TESTS = "chosen_tests"
