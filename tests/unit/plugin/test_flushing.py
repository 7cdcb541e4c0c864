from __future__ import annotations

import pytest

from proton_bench.errors import UsageError
from proton_bench.plugin import Availability, Backend, Mode, ModeSpec
from proton_bench.plugin.flushing import (
    PERIODIC_FLUSHING,
    PeriodicFlushing,
    take_flushing,
    with_flushing,
)


def backend(name: str, *modes: ModeSpec) -> Backend:
    def never(mode: Mode) -> None:
        raise AssertionError(mode)

    there = Availability(available=True, reason="a test made it")
    return Backend(
        name=name,
        summary="for a test",
        availability=lambda: there,
        open=never,  # type: ignore[arg-type]
        modes=modes,
    )


CUPTI = backend("cupti", ModeSpec("", {"copies": "on"}), PERIODIC_FLUSHING)
PLAIN = backend("plain", ModeSpec("fast"))


@pytest.mark.parametrize("text", [None, "", "copies=on"])
def test_nothing_is_taken_where_nothing_is_asked_for(text: str | None) -> None:
    assert take_flushing([CUPTI], text) == (None, text or "")


def test_options_are_read() -> None:
    text = "periodic_flushing:format=proton:interval=2.5"

    assert take_flushing([CUPTI], text) == (PeriodicFlushing("proton", 2.5, text), "")


@pytest.mark.parametrize("text", ["copies=on+periodic_flushing", "periodic_flushing+copies=on"])
def test_other_modes_stay(text: str) -> None:
    flushing, rest = take_flushing([CUPTI], text)

    assert flushing == PeriodicFlushing("", 0, "periodic_flushing")
    assert rest == "copies=on"


def test_it_is_an_unknown_mode_of_backends_that_do_not_declare_it() -> None:
    assert take_flushing([PLAIN], "periodic_flushing") == (None, "periodic_flushing")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("periodic_flushing:k=1", "CuptiProfiler: unsupported option key: k; choose from: format"),
        ("periodic_flushing:format=zzz", "CuptiProfiler: unsupported format: zzz; choose from:"),
        ("periodic_flushing:format=", "CuptiProfiler: unsupported format: ;"),
        ("periodic_flushing:interval=-1", "CuptiProfiler: unsupported interval: -1"),
        ("periodic_flushing:interval=nan", "CuptiProfiler: unsupported interval: nan"),
        ("periodic_flushing:interval=soon", "CuptiProfiler: unsupported interval: soon"),
        ("periodic_flushing+periodic_flushing:format=proton", "twice"),
        ("periodic_flushing:format", "malformed option 'format'"),
    ],
)
def test_wrong_options_are_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        take_flushing([CUPTI], text)


def test_the_modes_of_backends_that_declare_it_name_it() -> None:
    flushing = PeriodicFlushing("proton", 0, "periodic_flushing:format=proton")
    mode = Mode("", {"copies": "on"}, "copies=on")

    named = with_flushing(CUPTI, mode, flushing)
    assert named == Mode("", {"copies": "on"}, "copies=on+periodic_flushing:format=proton")
    assert with_flushing(CUPTI, Mode(), flushing).text == flushing.text
    assert with_flushing(PLAIN, mode, flushing) == mode
    assert with_flushing(CUPTI, mode, None) == mode
