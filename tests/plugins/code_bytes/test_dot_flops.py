"""Flops of kernels with dots, as a person counts them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from fakes.tritons import TRITONS, run_on

from proton_bench_plugins.triton.code_bytes import KernelWork

pytest.importorskip("triton")

from fakes.dot_kernels import CONSTANTS

Kernels = dict[str, KernelWork]


@pytest.fixture(scope="module", params=TRITONS, ids=lambda folder: folder or "installed")
def kernels(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    """What the code of each kernel says, compiled without a GPU."""
    made = run_on(request.param, tmp_path_factory.mktemp("cache"), "dot_kernels.py")
    return {name: KernelWork(compiled(**facts)) for name, facts in made.items()}


def compiled(ttir: str, signature: dict[str, str]) -> Any:
    """Return a kernel as Triton would."""
    function = SimpleNamespace(arg_names=list(signature))
    return SimpleNamespace(
        asm={"ttir": ttir}, src=SimpleNamespace(signature=signature, fn=function)
    )


def flops(kernels: Kernels, name: str, grid: tuple[int, ...], **integers: int) -> dict[str, int]:
    given = {**CONSTANTS[name], **integers}
    arguments = [given.get(each) for each in kernels[name].names]
    found: dict[str, int] = kernels[name].of_launch(grid, arguments).get("code_flops", {})
    return found


@pytest.mark.parametrize(("m", "n", "k"), [(64, 128, 32), (96, 64, 160), (32, 64, 17)])
def test_a_matrix_product_is_two_operations_for_each_product(
    kernels: Kernels, m: int, n: int, k: int
) -> None:
    rounded = -(-k // 16) * 16  # a part of a block computes a whole one

    found = flops(kernels, "matmul", (m // 32, n // 64), M=m, N=n, K=k)

    assert found == {"flops16": 2 * m * n * rounded}


def test_a_batch_multiplies_it(kernels: Kernels) -> None:
    found = flops(kernels, "batched", (2, 3, 7), M=32, N=48, K=64)

    assert found == {"flops16": 2 * 7 * 32 * 48 * 64}


def test_parts_of_a_sum_add_up(kernels: Kernels) -> None:
    found = flops(kernels, "split_k", (2, 4), M=32, N=16, K=256)

    assert found == {"flops16": 2 * 32 * 16 * 256}


def test_programs_that_take_several_tiles_have_all_of_them(kernels: Kernels) -> None:
    found = flops(kernels, "persistent", (3,), M=80, N=64, K=48)

    assert found == {"flops16": 2 * 80 * 64 * 48}


def test_attention_is_two_products(kernels: Kernels) -> None:
    found = flops(kernels, "attention", (4,), N=128)

    assert found == {"flops16": 2 * (2 * 128 * 128 * 64)}


def test_causal_attention_leaves_blocks_out(kernels: Kernels) -> None:
    found = flops(kernels, "causal_attention", (4,), N=128)

    columns = sum(32 * row for row in (1, 2, 3, 4))
    assert found == {"flops16": 2 * (2 * 32 * columns * 64)}


def test_eight_bits_have_a_width_of_their_own(kernels: Kernels) -> None:
    assert flops(kernels, "eights", (1, 1), K=64) == {"flops8": 2 * 16 * 16 * 64}


def test_each_dot_counts_by_its_width(kernels: Kernels) -> None:
    once = 2 * 16**3
    assert flops(kernels, "mixed", (5,)) == {"flops16": 5 * once, "flops32": 10 * once}


@pytest.mark.parametrize("taken", [0, 2, 4, 9])
def test_a_dot_in_a_branch_counts_where_it_is_taken(kernels: Kernels, taken: int) -> None:
    assert flops(kernels, "branch", (4,), N=taken) == {"flops16": min(taken, 4) * 2 * 16**3}


def test_a_dot_of_cubes_is_one_for_each_square(kernels: Kernels) -> None:
    assert flops(kernels, "cubes", (3,)) == {"flops16": 3 * 4 * 2 * 16**3}


def test_packed_operands_have_twice_as_many_products(kernels: Kernels) -> None:
    assert flops(kernels, "scaled", (2,)) == {"flops8": 2 * 2 * 128 * 128 * 128}


@pytest.mark.parametrize("name", ["while_loop", "no_dots"])
def test_nothing_is_said_where_there_are_none_or_nobody_knows(kernels: Kernels, name: str) -> None:
    assert flops(kernels, name, (4,), N=40) == {}
