from __future__ import annotations

import numpy as np
import pytest

from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.metrics.spans import is_span, spans_of, with_self_times
from proton_bench.model.profile import Profile

WALL = "wall (ns)"


def ranges(*rows: tuple[int, str, int | None]) -> Profile:
    builder = ProfileBuilder()
    builder.declare(WALL, Aggregation.EXCLUSIVE)
    for parent, name, wall in rows:
        metrics = {} if wall is None else {WALL: wall}
        builder.add(parent, name, FrameKind.SCOPE, metrics=metrics)
    return builder.build()


def test_a_row_has_its_time_without_that_of_the_nearest_rows_below() -> None:
    profile = ranges((0, "load", 90), (1, "read", None), (2, "decode", 50), (3, "copy", 20))

    spans = spans_of(profile, profile.columns[WALL])

    assert spans.own.tolist()[1:] == [40, 0, 30, 20]
    assert spans.whole.tolist() == [90, 90, 50, 50, 20]
    assert spans.has_own.tolist() == [False, True, False, True, True]


def test_self_times_add_up_to_the_outermost_ranges() -> None:
    profile = ranges((0, "a", 70), (1, "b", 30), (0, "c", 11), (3, "d", 11))

    assert with_self_times(profile).inclusive(WALL).tolist() == [81, 70, 30, 11, 11]


def test_time_of_a_device_is_not_time_of_the_host() -> None:
    builder = ProfileBuilder()
    builder.declare(WALL, Aggregation.EXCLUSIVE)
    scope = builder.add(0, "s", FrameKind.SCOPE, metrics={WALL: 10})
    for kind, time in (("CPU", 4), ("CUDA", 400)):
        metrics = {"time (ns)": time}
        builder.add(scope, f"on {kind}", FrameKind.OP, metrics=metrics, device=Device(kind, 0))
    profile = builder.build()

    spans = spans_of(profile, profile.columns[WALL])

    assert spans.own.tolist() == [0, 6, 4, 0]


@pytest.mark.parametrize("name", ["wall", "wall (mb)", "loss (ns)"])
def test_other_metrics_are_no_ranges(name: str) -> None:
    builder = ProfileBuilder()
    builder.declare(name, Aggregation.EXCLUSIVE)
    builder.add(0, "a", metrics={name: 1})

    assert not is_span(builder.build().columns[name])


def test_folding_rows_into_one_above_counts_their_time_once() -> None:
    profile = ranges((0, "f", 30), (1, "f", 20), (2, "f", 10), (0, "g", None), (4, "h", 5))

    folded = profile.fold_below(1)

    assert folded.columns[WALL].values.tolist() == [0, 30, 5]
    assert np.flatnonzero(folded.columns[WALL].valid).tolist() == [1, 2]


@pytest.mark.parametrize("has_scope", [False, True])
def test_backward_pass_adds_to_the_time_of_its_layer(has_scope: bool) -> None:
    builder = ProfileBuilder()
    builder.declare(WALL, Aggregation.EXCLUSIVE)
    top = builder.add(0, "fit", FrameKind.SCOPE, metrics={WALL: 100}) if has_scope else 0
    model = builder.add(top, "net (Net)", FrameKind.LAYER, metrics={WALL: 30})
    layer = builder.add(model, "net.fc (Linear)", FrameKind.LAYER, metrics={WALL: 20})
    backward = builder.add(layer, "<backward>", FrameKind.LAYER)
    for parent, name, time in ((layer, "addmm", 15), (backward, "mm", 50)):
        builder.add(
            parent, name, FrameKind.OP, metrics={"time (ns)": time}, device=Device("CPU", 0)
        )
    profile = builder.build()

    spans = spans_of(profile, profile.columns[WALL])

    found = dict(
        zip(
            map(profile.name, range(len(profile))),
            zip(spans.whole, spans.own, strict=True),
            strict=True,
        )
    )
    assert found["net (Net)"] == (80, 10)
    assert found["net.fc (Linear)"] == (70, 5)
    assert found["<backward>"][0] == found["mm"][0] == 50
    assert found["ROOT"][0] == (100 if has_scope else 80)
    assert not has_scope or found["fit"] == (100, 20)
