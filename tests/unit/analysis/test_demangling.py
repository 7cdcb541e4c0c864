from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis import demangling
from proton_bench.analysis.demangling import Demangling, base_name, demangled, short_name
from proton_bench.analysis.select import Selection, build_tree
from proton_bench.errors import BackendUnavailableError
from proton_bench.profile import ProfileBuilder


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
    monkeypatch.setattr(demangling, "_demangler", lambda: None)

    with pytest.raises(BackendUnavailableError, match="neither libstdc"):
        demangling.demangled.__wrapped__("_Z1fv")
