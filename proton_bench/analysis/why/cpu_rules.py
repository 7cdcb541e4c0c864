"""The rules of verdicts on the host, by the length of calls: their limits are not counted.

A call that takes about as long as torch needs to begin an operator is overhead, and of a longer one
it is said how long it took.
"""

from __future__ import annotations

import re

from proton_bench.analysis.why.row_facts import RowFacts
from proton_bench.analysis.why.rules import Match, Rule
from proton_bench.analysis.why.verdict import Evidence
from proton_bench.support.units import count_text, duration_text

SHORT_CALL_NS = 10_000.0  # of which torch's dispatch, checks and allocation are a large part

_TUNING = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
_OPERATOR = "::"  # in the names of torch's
_COMPILED = "Torch-Compiled Region"
_PRODUCT = re.compile(r"mm(_|$)|addbmm|matmul|linear|conv|dot_product|einsum|lstm|gru")
_MOVE = re.compile(r"copy|clone|contiguous|::to$|::cat$|::stack$|index|gather|scatter|embedding")


def is_short(facts: RowFacts) -> bool:
    """Return whether calls of an operator of torch take so little that they are overhead."""
    return _OPERATOR in facts.name and facts.mean_ns < SHORT_CALL_NS


def help_for(name: str) -> str:
    """Return what usually helps with a row of this name; "" for operators that can be fused."""
    if name.startswith(_COMPILED):
        return "mode='max-autotune', larger inputs, fewer regions"
    if _OPERATOR not in name:
        return "less work or waiting in it, or other threads and processes beside it"
    if _PRODUCT.search(name):
        return "a thread per free processor (torch.set_num_threads), BF16 where it has units"
    if _MOVE.search(name):
        return "fewer copies: keep layout, type and device, write results in place"
    return ""


def _calls(facts: RowFacts) -> Evidence:
    calls = count_text(int(facts.launches), "call")
    text = f"{calls} of {duration_text(facts.mean_ns)}, without operators below"
    return Evidence("row.mean_time", text, facts.mean_ns, "ns")


def _is_overhead(facts: RowFacts) -> Match | None:
    if not facts.is_on_host or not is_short(facts):
        return None
    return Match(f"{duration_text(facts.mean_ns)} a call", (_calls(facts),), 1.0)


def _is_work(facts: RowFacts) -> Match | None:
    if not facts.is_on_host:
        return None
    evidence = Evidence("row.time", f"{duration_text(facts.time_ns)} in all", facts.time_ns, "ns")
    short = ""
    if facts.launches > 0:
        evidence, short = _calls(facts), f"{duration_text(facts.mean_ns)} a call"
    return Match(short, (evidence,), 1.0, helps=help_for(facts.name))


CPU_RULES: tuple[Rule, ...] = (
    Rule(
        "overhead",
        _is_overhead,
        "fewer and larger calls: batches, operators on whole tensors, torch.compile",
        _TUNING,
    ),
    Rule(
        "elapsed",
        _is_work,
        "torch.compile, which fuses operators; smaller types",
        _TUNING,
    ),
)
