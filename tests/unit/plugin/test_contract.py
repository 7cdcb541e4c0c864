from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from proton_bench.plugin import contract
from proton_bench.plugin.backend import Availability, Backend, Mode, ModeSpec


class QuietCollector:
    def __init__(self, mode: Mode) -> None:
        self.mode = mode

    def start(self) -> None: ...
    def flush(self) -> None: ...
    def stop(self) -> None: ...


class LeakyCollector(QuietCollector):
    def start(self) -> None:
        sys.meta_path.append(self)  # type: ignore[arg-type]


class DirtyCollector(QuietCollector):
    def start(self) -> None:
        os.environ["PROTON_BENCH_LEAK"] = "1"


GOOD = Backend(
    name="good",
    summary="a backend that keeps its promises",
    availability=lambda: Availability(available=True, reason="always"),
    open=QuietCollector,
    modes=(ModeSpec("fast", {"factor": "how fast"}, "faster"),),
)


def test_a_good_backend_keeps_the_contract() -> None:
    opened: list[Mode] = []

    def note(mode: Mode) -> QuietCollector:
        opened.append(mode)
        return QuietCollector(mode)

    contract.assert_backend_contract(replace(GOOD, open=note), modes=("", "fast:factor=2"))

    assert [mode.text for mode in opened] == ["", "fast:factor=2"]


def test_an_unavailable_backend_is_not_opened() -> None:
    absent = replace(
        GOOD,
        availability=lambda: Availability(available=False, reason="no driver"),
        open=lambda mode: pytest.fail(f"opened with {mode}"),
    )

    contract.assert_backend_contract(absent)

    assert not absent.availability().available


def available(reason: str) -> Callable[[], Availability]:
    return lambda: Availability(available=True, reason=reason)


def changing() -> Callable[[], Availability]:
    answers = iter([True, False] * 9)
    return lambda: Availability(available=next(answers), reason="now and then")


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        (replace(GOOD, name="Bad+"), "backend name 'Bad\\+'"),
        (replace(GOOD, summary=""), "summary of 'good' must be one line"),
        (replace(GOOD, summary="a\nb"), "must be one line"),
        (replace(GOOD, data=()), "supports no kind of data"),
        (replace(GOOD, data=("table",)), r"data of 'good': \['table'\]"),
        (replace(GOOD, modes=(ModeSpec("a"), ModeSpec("a"))), "declares a mode twice"),
        (replace(GOOD, modes=(ModeSpec(""),)), "the default mode is not declared"),
        (replace(GOOD, modes=(ModeSpec("a", {"b": ""}),)), "documentation of option 'b'"),
        (replace(GOOD, availability=available("")), "reason of the availability"),
        (replace(GOOD, availability=changing()), "changed from one call to the next"),
        (replace(GOOD, open=lambda mode: object()), "must return start, flush and stop"),
        (replace(GOOD, open=LeakyCollector), "leaves sys.meta_path changed"),
        (replace(GOOD, open=DirtyCollector), "leaves os.environ changed"),
    ],
)
def test_a_broken_promise_is_named(
    backend: Backend, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setenv("PROTON_BENCH_LEAK", "0")

    with pytest.raises(AssertionError, match=message):
        contract.assert_backend_contract(backend)
