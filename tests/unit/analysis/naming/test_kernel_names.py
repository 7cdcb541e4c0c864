from __future__ import annotations

import gzip
import random
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proton_bench.analysis.naming.demangling import all_demangled
from proton_bench.analysis.naming.kernel_names import kernel_texts, short_form
from proton_bench.support.text import visible

DATA = Path(__file__).parents[3] / "data" / "kernel_names"
LIBRARIES = gzip.decompress((DATA / "libraries.txt.gz").read_bytes()).decode().split()
TRACES = [line.split("\t") for line in (DATA / "traces.tsv").read_text().splitlines()]

ADD = "at::native::CUDAFunctor_add<float>"
MUL = "at::native::{0}<float, float, float, at::native::binary_internal::MulFunctor<float> >"
PIECES = st.sampled_from(
    [
        *("void ", "at::native::", "reduce_kernel", "f", "<", ">", "(", ")", "{", "}", ",", " #2"),
        *("float", "c10::Half", "4", "8", "lambda(int)#1", "operator()", "_", "é", "\x1b", "\\x1b"),
        *("ampere_sgemm_", "128x64", "_tn", "nvjet_tst_", "ncclDevKernel_AllReduce_", "Cijk_"),
    ]
)
NAMES = st.lists(PIECES, max_size=12).map("".join)


def vectorized(functor: str, count: int = 4) -> str:
    head = "void at::native::vectorized_elementwise_kernel"
    return f"{head}<{count}, {functor}, std::array<char*, 3ul> >(int, {functor})"


def assert_told_apart(names: list[str]) -> dict[str, str]:
    texts = kernel_texts(names)
    assert set(texts) == set(names)
    shown = [visible(text) for text in texts.values()]
    assert len(set(shown)) == len(shown)
    return texts


# -- forms ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(("shown", "name"), TRACES)
def test_names_of_traces_have_the_form_of_their_family(shown: str, name: str) -> None:
    assert short_form(name) == shown


@pytest.mark.parametrize(
    ("functor", "shown"),
    [
        (ADD, "elementwise add<float> vec4"),
        (MUL.format("BinaryFunctor"), "elementwise mul<float> vec4"),
        (MUL.format("AUnaryFunctor"), "elementwise mul scalar<float> vec4"),
        ("at::native::CUDAFunctor_add<c10::BFloat16>", "elementwise add<bf16> vec4"),
        (
            "at::native::FillFunctor<c10::complex<double> >",
            "elementwise fill<complex<double>> vec4",
        ),
        ("at::native::FillFunctor<c10::Float8_e4m3fn>", "elementwise fill<f8e4m3> vec4"),
    ],
)
def test_elementwise_kernels_keep_functor_and_type(functor: str, shown: str) -> None:
    assert short_form(vectorized(functor)) == shown


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("void mine::step<float, 4, other::Policy<8> >(float*)", "mine::step<float,4,Policy<8>>"),
        ("at::native::plain(int)", "plain"),
        ("void k<int>::run<c10::Half>(int)", "k::run<f16>"),
        ("triton_poi_fused_add_relu", "triton_poi_fused_add_relu"),
        ("", ""),
        ("<<<", "<<<"),
        ("operator()(int)", "operator()(int)"),
    ],
)
def test_other_names_lose_scopes_and_parameters_only(name: str, shown: str) -> None:
    assert short_form(name) == shown


def test_long_names_fit_a_line() -> None:
    name = f"void {'n' * 5000}<int>(int)"

    assert len(short_form(name)) <= 100
    assert short_form(name).startswith("nnn")


# -- what makes texts differ ---------------------------------------------------------------------
def test_names_of_libraries_and_traces_are_told_apart() -> None:
    assert len(LIBRARIES) > 500

    texts = assert_told_apart([*LIBRARIES, *(name for _, name in TRACES)])

    # At last a number: rarely, because hardly anything but it is the same in two names.
    numbered = [text for text in texts.values() if " #" in text]
    assert len(numbered) < len(texts) / 50
    assert sum(len(text) for text in texts.values()) < 60 * len(texts)


@given(st.lists(st.one_of(NAMES, st.text(max_size=30)), max_size=30))
@example(["f<1>(x)", "f<2>(x)", "f {1}", "f", "f #2"])
@example(["elementwise add<float> vec4", vectorized(ADD)])
@example(["a\nb", "a\\nb"])
@example(["void f<int, float>(x)", "void f<float, int>(x)"])
def test_different_names_never_have_the_same_text(names: list[str]) -> None:
    assert_told_apart(names)


@given(st.lists(st.sampled_from(LIBRARIES), max_size=40, unique=True), st.randoms())
def test_texts_do_not_depend_on_the_order_of_names(names: list[str], order: random.Random) -> None:
    texts = kernel_texts(names)
    order.shuffle(names)

    assert kernel_texts(names) == texts


def test_equal_forms_get_what_differs() -> None:
    names = [
        vectorized("at::native::CUDAFunctorOnSelf_add<float>"),
        vectorized(MUL.format("AUnaryFunctor")),
    ]
    names.append(vectorized("at::native::CUDAFunctorOnOther_add<float>"))

    texts = kernel_texts(names)

    assert texts[names[0]] == "elementwise add scalar<float> vec4 {CUDAFunctorOnSelf_add}"
    assert texts[names[1]] == "elementwise mul scalar<float> vec4"
    assert texts[names[2]] == "elementwise add scalar<float> vec4 {CUDAFunctorOnOther_add}"


def test_a_name_shown_as_it_is_keeps_its_text() -> None:
    plain = "elementwise add<float> vec4"

    assert kernel_texts([plain, vectorized(ADD)])[plain] == plain


def test_names_that_differ_far_behind_are_numbered_in_order() -> None:
    names = [f"void f<{'int, ' * 3000}{last}>(x)" for last in "ab"]

    texts = list(kernel_texts(names[::-1]).values())

    assert texts[1] == f"{texts[0]} #2"


# -- cost ----------------------------------------------------------------------------------------
def test_ten_thousand_names_cost_little() -> None:
    full = list(all_demangled(LIBRARIES).values())
    names = [f"{name} [{number}]" for number in range(8) for name in full][:10_000]
    started = time.process_time()

    kernel_texts(names)

    assert time.process_time() - started < 1.5  # 0.3 s on a machine that does nothing else


@pytest.mark.parametrize(
    "name",
    [
        "<" * 1_000_000,
        f"void f<{'a<' * 300_000}{'>' * 300_000}>()",
        f"_Z{'N' * 1_000_000}",
        f"_ZN{'1a' * 400_000}E",
        "x" * 1_000_000,
        f"void at::native::reduce_kernel<{'lambda(' * 200_000}>(x)",
        f"void at::native::reduce_kernel<{'int, ' * 200_000}>(x)",
        f"void f<{'a::' * 300_000}>(x)",
        f"Cijk_Ailk_Bljk_SB_{'MT1x1_' * 100_000}",
        f"ampere_sgemm_{'1' * 1_000_000}",
        f"void f<{'unsigned ' * 100_000}>(x)",
    ],
)
def test_hostile_names_cost_little(name: str) -> None:
    started = time.process_time()

    texts = kernel_texts([name, f"{name}1"])

    assert time.process_time() - started < 0.5
    assert max(map(len, texts.values())) < 300


@pytest.mark.parametrize("launcher", ["gpu_kernel_impl", "gpu_kernel_impl_nocast"])
@pytest.mark.parametrize(("type_", "shown"), [("c10::Half", "f16"), ("double", "double")])
def test_the_index_of_a_launcher_is_not_the_type_of_its_operands(
    launcher: str, type_: str, shown: str
) -> None:
    functor = (
        f"at::native::BinaryFunctor<{type_}, {type_}, {type_}, "
        "at::native::binary_internal::DivFunctor<float> >"
    )
    made = f"at::native::{launcher}<{functor} >(at::TensorIteratorBase&, {functor} const&)"
    name = f"void at::native::elementwise_kernel<128, 2, {made}::{{lambda(int)#1}}>(int, {made})"

    assert kernel_texts([name])[name] == f"elementwise div<{shown}>"
