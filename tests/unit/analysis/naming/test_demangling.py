from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis.naming import demangling
from proton_bench.analysis.naming.demangling import (
    all_demangled,
    base_name,
    base_names,
    demangled,
)
from proton_bench.errors import BackendUnavailableError

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
HOSTILE = "_Z1f1AIiiE" + "".join(f"S_IS{d}_S{d}_E" for d in DIGITS[:30])


@pytest.mark.parametrize(
    ("name", "full", "base"),
    [
        ("_ZN2at4fillILi4EEEvPf", "void at::fill<4>(float*)", "fill"),
        ("matmul_kernel", "matmul_kernel", "matmul_kernel"),
        ("_Zbroken", "_Zbroken", "_Zbroken"),
        ("f(int*) (.kd)", "f(int*) (.kd)", "f"),
        ("<autotune>", "<autotune>", "<autotune>"),
    ],
)
def test_names(name: str, full: str, base: str) -> None:
    assert (demangled(name), base_name(name)) == (full, base)
    assert base_names([name]) == {name: base}


def test_anonymous_namespaces_and_nested_templates_are_understood() -> None:
    assert base_name("void a::(anonymous namespace)::f<int, b<(c)1>>(int, char*)") == "f"


@given(st.text(max_size=80))
def test_any_name_has_some_base(name: str) -> None:
    assert isinstance(base_name(f"_Z{name}"), str)


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr("ctypes.CDLL", absent)
    monkeypatch.setattr(demangling, "_demangler", demangling._demangler.__wrapped__)

    with pytest.raises(BackendUnavailableError, match="neither libstdc"):
        demangling.demangled.__wrapped__("_Z1fv")


def test_what_one_name_becomes_does_not_depend_on_others() -> None:
    risky = "_Z1fI" + "1A" + "S_" * 30 + "EvT_"
    names = ["_Z1fv", *(f"_Z{n}{'g' * n}S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_i" for n in range(2, 5))]
    names += [HOSTILE, risky]

    forwards = all_demangled(names)

    assert forwards == all_demangled(names[::-1])
    assert forwards[HOSTILE] == HOSTILE
    assert forwards["_Z1fv"] == "f()"


def test_many_hostile_names_end_together() -> None:
    names = [f"{HOSTILE}{number}" for number in range(3000)]

    assert all_demangled(names) == {name: name for name in names}


def test_names_longer_than_any_compiler_writes_stay_mangled() -> None:
    name = f"_Z100000{'f' * 100_000}v"

    assert all_demangled([name, "_Z1fv"]) == {"_Z1fv": "f()"}
    assert demangled(name) == name
