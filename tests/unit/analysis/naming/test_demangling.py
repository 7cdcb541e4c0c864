from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis.naming import demangling
from proton_bench.analysis.naming.demangling import all_demangled, base_name, base_names, demangled
from proton_bench.analysis.naming.operation import (
    operand_type,
    operation,
    parse,
    scalar_type,
    without_scopes,
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


@pytest.mark.parametrize(
    ("text", "scope", "name", "arguments"),
    [
        ("void a::b::f<int, g<4> >(int)", "a::b", "f", ("int", "g<4>")),
        ("f(int)", "", "f", ()),
        ("void (anonymous namespace)::f<float>(float)", "", "f", ("float",)),
        ("void a::<unnamed>::f<(int)4, (bool)1>(T1)", "a", "f", ("4", "1")),
        ("void c<int>::f(int)", "c", "f", ()),
        ("void c<int>::f<2>(int)", "c", "f", ("2",)),
        ("std::enable_if<!(false), void>::type a::k<7>(x)", "a", "k", ("7",)),
        ("void f<h(int)::{lambda(int, int)#1}, 4>(x) [clone .kd]", "", "f", None),
        ("void f<cut, off<int", "", "f", ("cut", "off<int")),
    ],
)
def test_parts_of_declarations(
    text: str, scope: str, name: str, arguments: tuple[str, ...] | None
) -> None:
    found = parse(text)

    assert found is not None
    assert (found.scope, found.name) == (scope, name)
    expected = ("h(int)::{lambda(int, int)#1}", "4") if arguments is None else arguments
    assert found.arguments == expected


@pytest.mark.parametrize("text", ["", "<a>", "a b<c> d", "1<2>", "operator()(int)", "((((", "%<4>"])
def test_other_texts_are_no_declarations(text: str) -> None:
    assert parse(text) is None


@given(st.text(alphabet="ab:<>(){}, 4", max_size=60))
def test_any_text_is_read(text: str) -> None:
    found = parse(text)

    assert found is None or found.name.isidentifier()


def test_spellings_of_lambdas_become_one() -> None:
    found = parse("void f<g(int)::[lambda(float) (instance 3)]>(int)")

    assert found is not None
    assert found.arguments == ("g(int)::{lambda(float)#3}",)


@pytest.mark.parametrize(
    ("text", "scalar"),
    [
        ("4, c10::Half, int", "f16"),
        ("my::float_box<unsigned char>", "uint8"),
        ("c10::complex<c10::Half>", "complex<f16>"),
        ("floating", ""),
    ],
)
def test_first_type_of_numbers(text: str, scalar: str) -> None:
    assert scalar_type(text) == scalar


def test_types_lose_their_namespaces() -> None:
    assert without_scopes("a::b::C<c10::BFloat16, d::E >") == "C<bf16,E>"


@pytest.mark.parametrize(
    ("arguments", "computed", "type_"),
    [
        (
            "at::native::GeluCUDAKernelImpl(at::T&)::{lambda()#2}::{lambda(c10::Half)#1}",
            "gelu",
            "f16",
        ),
        ("at::native::ReduceOp<float, at::native::NormTwoOps<float> >", "norm_two", "float"),
        ("TensorListMetadata<2>, UnaryOpFunctor<double, 2, 1, 1>, Sqrt<double>", "sqrt", "double"),
        ("at::native::func_wrapper_t<int>", "", "int"),
    ],
)
def test_operation_and_type_of_operands(arguments: str, computed: str, type_: str) -> None:
    assert (operation(arguments), operand_type(arguments)) == (computed, type_)
