from __future__ import annotations

import dataclasses
import re
import subprocess
import sys

import pytest

from proton_bench.errors import UsageError
from proton_bench.plugin.backend import (
    Availability,
    Backend,
    Mode,
    ModeSpec,
    assign_modes,
    parse_mode,
)


def make_backend(name: str, *modes: ModeSpec) -> Backend:
    return Backend(
        name=name,
        summary="for tests",
        availability=lambda: Availability(available=True, reason="always"),
        open=lambda mode: pytest.fail(f"opened with {mode}"),
        modes=modes,
    )


SAMPLING = make_backend("gpu", ModeSpec("pcsampling", {"interval": "cycles"}), ModeSpec("graph"))
PLAIN = make_backend("cpu")


@pytest.mark.parametrize("text", [None, ""])
def test_no_text_is_the_default_mode(text: str | None) -> None:
    assert parse_mode(text) == Mode("", {}, "")


def test_a_mode_is_split_into_name_and_options() -> None:
    mode = parse_mode("pcsampling:interval=1000:note=a=b")

    assert mode.name == "pcsampling"
    assert mode.options == {"interval": "1000", "note": "a=b"}
    assert mode.text == "pcsampling:interval=1000:note=a=b"


def test_options_alone_are_those_of_the_default_mode() -> None:
    mode = parse_mode("copies=on:depth=3")

    assert mode.name == ""
    assert mode.options == {"copies": "on", "depth": "3"}


@pytest.mark.parametrize("text", ["x:interval", "x:=3", "x:", "a=1:b"])
def test_a_malformed_option_is_named(text: str) -> None:
    with pytest.raises(UsageError, match="malformed option"):
        parse_mode(text)


def test_an_option_that_stands_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="'a' is given twice"):
        parse_mode("x:a=1:a=2")


def test_options_of_the_default_mode_go_to_the_backend_that_has_them() -> None:
    tunable = make_backend("tunable", ModeSpec("", {"depth": "levels"}))

    assert assign_modes([PLAIN, tunable], "depth=3")[0].options == {}
    assert assign_modes([PLAIN, tunable], "depth=3")[1].options == {"depth": "3"}
    with pytest.raises(UsageError, match="has no option 'width'; its options: depth"):
        assign_modes([tunable], "width=3")
    with pytest.raises(UsageError, match="unsupported mode: fast; choose one of options depth"):
        assign_modes([tunable], "fast")


def test_options_without_their_mode_say_where_they_belong() -> None:
    expected = "these are options of 'pcsampling': write pcsampling:interval=9"

    with pytest.raises(UsageError, match=expected):
        assign_modes([SAMPLING], "interval=9")


def test_the_mode_goes_to_the_backend_that_declares_it() -> None:
    modes = assign_modes([PLAIN, SAMPLING], "pcsampling:interval=9")

    assert [mode.text for mode in modes] == ["", "pcsampling:interval=9"]


def test_a_mode_with_options_goes_to_the_backends_that_have_them() -> None:
    plain = make_backend("cpu", ModeSpec("pcsampling"))

    shared = assign_modes([SAMPLING, plain], "pcsampling")
    alone = assign_modes([SAMPLING, plain], "pcsampling:interval=1")

    assert [mode.name for mode in shared] == ["pcsampling", "pcsampling"]
    assert [mode.name for mode in alone] == ["pcsampling", ""]
    with pytest.raises(UsageError, match="interval"):
        assign_modes([SAMPLING, plain], "pcsampling:note=1")


def test_without_a_mode_every_backend_gets_its_default() -> None:
    assert assign_modes([PLAIN, SAMPLING], None) == (Mode(), Mode())


def test_an_unknown_mode_names_the_choices() -> None:
    expected = "unsupported mode: quick; choose one of pcsampling, graph"

    with pytest.raises(UsageError, match=re.escape(expected)):
        assign_modes([PLAIN, SAMPLING], "quick")


def test_a_misspelt_mode_is_named_once_with_the_right_one() -> None:
    with pytest.raises(UsageError, match=r"mode: pcsampler; did you mean 'pcsampling'\?$"):
        assign_modes([PLAIN, SAMPLING], "pcsampler")


DEEP = make_backend("cpu", ModeSpec("cpu", {"depth": "operators"}))
REPLAY = make_backend("replay", ModeSpec("replay", {"file": "path"}))


def test_modes_of_several_backends_are_joined() -> None:
    modes = assign_modes([REPLAY, DEEP], "replay:file=a+b/x+cpu:depth=3")

    assert [mode.text for mode in modes] == ["replay:file=a+b/x", "cpu:depth=3"]
    assert modes[1].options == {"depth": "3"}


def test_options_alone_are_joined_with_modes() -> None:
    copies = make_backend("cupti", ModeSpec("", {"copies": "on or off"}))

    for text in ("copies=on+cpu:depth=3", "cpu:depth=3+copies=on"):
        modes = assign_modes([copies, DEEP], text)

        assert [mode.text for mode in modes] == ["copies=on", "cpu:depth=3"]


def test_two_modes_for_one_backend_are_refused() -> None:
    with pytest.raises(UsageError, match="'cpu' is given two modes, 'cpu:depth=3' and 'cpu'"):
        assign_modes([REPLAY, DEEP], "cpu:depth=3+cpu")


def test_a_mode_for_a_backend_without_modes_is_refused() -> None:
    with pytest.raises(UsageError, match="it has no modes, leave the mode out"):
        assign_modes([PLAIN], "x")


def test_a_mode_that_only_others_have_is_refused_with_the_reason() -> None:
    backend = dataclasses.replace(PLAIN, refused_modes={"sampling": "no hardware supports it"})

    with pytest.raises(UsageError, match="leave the mode out; no hardware"):
        assign_modes([backend], "sampling:period=3")


def test_an_unknown_option_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="no option 'period'; its options: interval"):
        assign_modes([SAMPLING], "pcsampling:period=3")
    with pytest.raises(UsageError, match="no option 'a'; its options: none"):
        assign_modes([SAMPLING], "graph:a=3")


def test_options_without_a_mode_name_are_refused() -> None:
    with pytest.raises(UsageError, match="unsupported mode: :a=3"):
        assign_modes([PLAIN], ":a=3")


def test_hookimpl_is_offered_and_loads_pluggy_only_then() -> None:
    program = (
        "import sys, proton_bench.plugin as p; before = 'pluggy' in sys.modules; p.hookimpl; "
        "print(before, 'pluggy' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.stdout.split() == ["False", "True"], done.stderr
