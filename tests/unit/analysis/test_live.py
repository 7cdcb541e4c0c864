from __future__ import annotations

import pytest
from fakes.partials import partial_at

from proton_bench.analysis.live import Work, last_seconds
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile

MS = 1_000_000


def test_what_was_recorded_in_between_is_the_difference() -> None:
    last = last_seconds(
        partial_at(10, kernels={"a": 500 * MS, "b": 30 * MS}, busy_ns=530 * MS, steps=7),
        partial_at(
            12, kernels={"a": 600 * MS, "b": 930 * MS, "c": MS}, busy_ns=1531 * MS, steps=12
        ),
    )

    assert last.kernels == (
        Work("b", 900 * MS, 900),
        Work("a", 100 * MS, 100),
        Work("c", MS, 1),
    )
    assert last.layers == (Work("model.* (Linear)", 1001 * MS, 1001),)
    assert dict(last.busy) == {"CUDA:0": pytest.approx(0.5005)}
    assert (last.length_ns, last.steps, last.steps_per_second) == (2 * 10**9, 5, 2.5)


def test_what_did_not_run_meanwhile_is_left_out() -> None:
    last = last_seconds(partial_at(1, kernels={"a": MS}), partial_at(2, kernels={"a": MS}))

    assert (last.kernels, last.layers, last.steps) == ((), (), None)


def scopes_at(second: int) -> Profile:
    """Return elapsed times of scopes alone: what the backend `cpu` records."""
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    step = builder.add(0, "step", FrameKind.SCOPE, metrics={"wall (ns)": 10 * second * MS})
    builder.add(step, "forward", FrameKind.SCOPE, metrics={"wall (ns)": 7 * second * MS})
    return builder.build(partial=True, provenance={"end_time_ns": second * 10**9})


def test_scopes_alone_have_their_elapsed_times() -> None:
    last = last_seconds(scopes_at(1), scopes_at(3))

    assert {each.name: each.time_ns for each in last.layers} == {
        "step/forward": 14 * MS,
        "step": 6 * MS,
    }


def test_without_layers_scopes_are_shown() -> None:
    before, after = (
        partial_at(second, kernels={"a": second * MS}, layer="forward", kind=FrameKind.SCOPE)
        for second in (1, 3)
    )

    assert last_seconds(before, after).layers == (Work("forward", 2 * MS, 2),)
