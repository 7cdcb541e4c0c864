"""Decides whether a program got slower: by call path, and says when it does not know.

Pure: profiles and a policy in, a verdict out. What runs programs and keeps baselines stands above.
"""

from __future__ import annotations

from proton_bench.gate.judgement import judge
from proton_bench.gate.noise import Noise
from proton_bench.gate.policy import Policy, read_policy
from proton_bench.gate.result import GateResult, GateRow
from proton_bench.gate.session import Context
from proton_bench.gate.threshold import Threshold, parse_threshold
from proton_bench.gate.verdict import Reason, SuiteVerdict, Verdict

__all__ = [
    "Context",
    "GateResult",
    "GateRow",
    "Noise",
    "Policy",
    "Reason",
    "SuiteVerdict",
    "Threshold",
    "Verdict",
    "judge",
    "parse_threshold",
    "read_policy",
]
