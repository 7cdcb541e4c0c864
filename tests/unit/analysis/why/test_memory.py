from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from proton_bench.analysis.why.answer import why
from proton_bench.analysis.why.memory import peak_memory
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.memory import FAILED, GROWN, KEPT, PEAK, UNPLACED
from proton_bench.model.profile import Profile

MIB = 1 << 20
LINE = "train.py:7@main"
OPTIMIZER = "Optimizer.step#AdamW.step"
STEPS = {
    "by": "optimizer",
    "name": "AdamW",
    "first": 8,
    "count": 8,
    "begun": 16,
    "low_ns": 1,
    "median_ns": 1,
    "high_ns": 1,
    "before_ns": 0,
    "run_ns": 100,
}
# Path -> MiB at the peak, and at the end of the last step.
TRAINING = {
    "": (20, 20),
    "Net": (0, 0),
    "Net/h.0": (40, 0),
    "Net/h.0/<backward>": (10, 8),
    "Net/lm_head": (10, 0),
    OPTIMIZER: (12, 10),
    UNPLACED: (4, 4),
}
KINDS = {
    "": FrameKind.ROOT,
    "<backward>": FrameKind.LAYER,
    UNPLACED: FrameKind.PYTHON,
    LINE: FrameKind.PYTHON,
}


def profile_of(
    rows: Mapping[str, tuple[float, float]],
    *,
    steps: bool = True,
    **more: Mapping[str, float],
) -> Profile:
    """Return a profile with these rows; further columns are MiB by path."""
    builder = ProfileBuilder()
    columns: dict[str, Mapping[str, float]] = {
        PEAK: {path: held for path, (held, _) in rows.items()},
        KEPT: {path: kept for path, (_, kept) in rows.items()},
        **more,
    }
    found: dict[str, int] = {"": 0}
    for path in rows:
        if path:
            above, _, name = path.rpartition("/")
            kind = KINDS.get(name, FrameKind.LAYER)
            found[path] = builder.add(found[above], name, kind)
    for name, values in columns.items():
        for path, value in values.items():
            builder.set(found[path], name, int(value * MIB))
    facts: dict[str, Any] = {"steps": STEPS} if steps else {}
    return builder.build(provenance=facts)


def kinds_of(profile: Profile) -> dict[str, float]:
    memory = peak_memory(profile)
    assert memory is not None
    return {kind: size / MIB for kind, size in memory.kinds.items() if size}


def test_kinds_follow_from_where_memory_came_from_and_whether_it_stayed() -> None:
    assert kinds_of(profile_of(TRAINING)) == {
        "activations": 50,
        "parameters and set-up": 20,
        "optimizer state": 10,
        "gradients": 8,
        "allocated while not recorded": 4,
        "temporaries of the backward pass": 2,
        "temporaries of the optimizer": 2,
    }


def test_without_steps_only_the_place_is_known() -> None:
    assert kinds_of(profile_of(TRAINING, steps=False)) == {
        "activations": 50,
        "parameters, inputs and set-up": 20,
        "optimizer state": 12,
        "gradients and temporaries of the backward pass": 10,
        "allocated while not recorded": 4,
    }


def test_what_layers_keep_without_a_backward_pass_is_a_cache() -> None:
    profile = profile_of({"": (20, 20), "Net": (0, 0), "Net/attn": (30, 24)})

    assert kinds_of(profile) == {"cache": 24, "parameters and set-up": 20, "activations": 6}


def test_the_rows_that_hold_most_are_named_once() -> None:
    memory = peak_memory(profile := profile_of(TRAINING))

    assert memory is not None
    assert memory.total == 96 * MIB
    assert [(profile.name(row), size / MIB) for row, size in memory.places.items()] == [
        ("h.0", 50),
        ("ROOT", 20),
        (OPTIMIZER, 12),
    ]


def test_what_grows_in_every_step_is_named_with_its_path() -> None:
    profile = profile_of({**TRAINING, LINE: (8, 8)}, **{GROWN: {LINE: 0.5}})

    (grown,) = [each for each in why(profile).memory if each.id == "memory.grown"]

    assert "train.py:7" in grown.text
    assert "512 KiB more in every step" in grown.text
    assert grown.value == 0.5 * MIB


def test_an_error_for_lack_of_memory_comes_first() -> None:
    profile = profile_of(TRAINING, steps=False, **{FAILED: {"Net/lm_head": 512}})

    first, second, *_ = why(profile).memory

    assert first.id == "memory.failed"
    assert "512 MiB" in first.text
    assert "lm_head" in first.text
    assert second.text.startswith("96 MiB at the error")


def test_steps_say_what_ended_their_run() -> None:
    run = profile_of(TRAINING, steps=False, **{FAILED: {"Net/lm_head": 512}})

    first, second, *_ = why(replace(profile_of(TRAINING), whole=run)).memory

    assert first.text == "out of memory: 512 MiB asked for in Net › lm_head beside 96 MiB"
    assert second.text.startswith("96 MiB at the peak")


def test_a_profile_without_memory_says_nothing_of_it() -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", FrameKind.KERNEL)

    assert why(builder.build()).memory == ()
