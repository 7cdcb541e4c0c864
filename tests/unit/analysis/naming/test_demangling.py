from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis.view import demangling
from proton_bench.analysis.view.demangling import (
    Demangling,
    base_name,
    demangled,
    short_name,
    with_demangled_names,
)
from proton_bench.analysis.view.select import Selection, build_tree
from proton_bench.errors import BackendUnavailableError
from proton_bench.model.builder import ProfileBuilder


@pytest.mark.parametrize(
    ("name", "full", "short", "base"),
    [
        ("_ZN2at4fillILi4EEEvPf", "void at::fill<4>(float*)", "at::fill", "fill"),
        ("matmul_kernel", "matmul_kernel", "matmul_kernel", "matmul_kernel"),
        ("_Zbroken", "_Zbroken", "_Zbroken", "_Zbroken"),
        ("f(int*) (.kd)", "f(int*) (.kd)", "f", "f"),
        ("<autotune>", "<autotune>", "<autotune>", "<autotune>"),
    ],
)
def test_names(name: str, full: str, short: str, base: str) -> None:
    assert (demangled(name), short_name(name), base_name(name)) == (full, short, base)


def test_anonymous_namespaces_and_nested_templates_are_understood() -> None:
    name = "void a::(anonymous namespace)::f<int, b<(c)1>>(int, char*)"

    assert short_name(name) == "a::(anonymous namespace)::f"


@given(st.text(max_size=80))
def test_any_name_has_some_short_form(name: str) -> None:
    assert isinstance(short_name(f"_Z{name}"), str)
    assert short_name(name) or not name or name in {" [clone .kd]", " (.kd)", ".kd"}


def test_view_shows_demangled_names() -> None:
    builder = ProfileBuilder()
    builder.add(0, "_ZN2at4fillILi4EEEvPf", metrics={"time (ns)": 1, "label": "x"})
    profile = builder.build()

    names = {
        form: build_tree(profile, ["time", "label"], Selection(demangling=form)).name(1)
        for form in Demangling
    }

    assert list(names.values()) == ["_ZN2at4fillILi4EEEvPf", "void at::fill<4>(float*)", "at::fill"]


def test_texts_of_metrics_stay_what_they_are() -> None:
    builder = ProfileBuilder()
    for number, label in enumerate(["_Z1fv", "b", "c"]):
        metrics = {"time (ns)": 1, "label": label}
        builder.add(0, f"triton_poi_fused_add_{number}", metrics=metrics)
    builder.add(0, "_Z1gi", metrics={"label": "last"})

    tree = build_tree(builder.build(), ["label"], Selection(demangling=Demangling.FULL))

    # Of rows that became one, the last text counts.
    assert tree.metrics[0].to_list() == [None, "c", "last"]
    assert tree.name(2) == "g(int)"


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr("ctypes.CDLL", absent)
    monkeypatch.setattr(demangling, "_demangler", demangling._demangler.__wrapped__)

    with pytest.raises(BackendUnavailableError, match="neither libstdc"):
        demangling.demangled.__wrapped__("_Z1fv")


def test_what_one_name_shows_does_not_depend_on_others() -> None:
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    hostile = "_Z1f1AIiiE" + "".join(f"S_IS{d}_S{d}_E" for d in digits[:30])
    risky = "_Z1fI" + "1A" + "S_" * 30 + "EvT_"
    names = ["_Z1fv", *(f"_Z{n}{'g' * n}S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_i" for n in range(2, 5))]
    names += [hostile, risky]

    def shown(order: list[str]) -> dict[str, str]:
        builder = ProfileBuilder()
        for name in order:
            builder.add(0, name, metrics={"time (ns)": 1})
        profile = with_demangled_names(builder.build(), Demangling.FULL)
        return dict(zip(order, (profile.name(row) for row in range(1, len(profile))), strict=True))

    forwards = shown(names)

    assert forwards == shown(names[::-1])
    assert forwards[hostile] == hostile
    assert forwards["_Z1fv"] == "f()"


def test_many_hostile_names_end_together() -> None:
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    hostile = "_Z1f1AIiiE" + "".join(f"S_IS{d}_S{d}_E" for d in digits[:30])
    builder = ProfileBuilder()
    for number in range(3000):
        builder.add(0, f"{hostile}{number}", metrics={"time (ns)": 1})
    profile = builder.build()

    assert with_demangled_names(profile, Demangling.FULL) is profile
