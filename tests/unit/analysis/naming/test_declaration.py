from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis.naming.operation import (
    operand_type,
    operation,
    parse,
    scalar_type,
    without_scopes,
)


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
