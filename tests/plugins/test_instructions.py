"""The instructions of compiled kernels: counted in what Triton writes, and shown by a diff."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.tritons import TRITONS, run_on
from hypothesis import given
from hypothesis import strategies as st

from proton_bench import _native
from proton_bench.errors import UsageError
from proton_bench.formats.registry import read_profile
from proton_bench.model.merge import merge
from proton_bench_plugins.triton import codes

pytest.importorskip("triton")
pytest.importorskip("torch")

LANGUAGES = ("ptx", "amdgcn")
PROGRAM = "mix_kernels.py"
PTX = (
    "\tld.global.v4.b32 \t{ %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];\n",
    "\tst.shared.b32 \t[%r1], %r2;\n",
    "$L__BB0_2:                              // %.lr.ph\n",
    "\t@!%p1 bra \t$L__BB0_2;\n",
    "\tfma.rn.f32 \t%f1, %f2, %f3, %f4;\n",
    "\t.loc\t1 9 15                          // a.py:9:15 @[ a.py:14:14 ]\n",
    "{ // callseq 0, 0\n",
    "}\n",
)
AMDGCN = (
    "\tglobal_load_dwordx4 v[0:3], v4, s[0:1]\n",
    "\tv_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]\n",
    ".LBB0_1:                                ; %.lr.ph\n",
    "\ts_cbranch_scc1 .LBB0_1\n",
    "\t.p2align\t8\n",
)


def count(text: str, language: str) -> dict[str, int]:
    return _native.note_instructions(0, text, language)


@pytest.fixture(scope="module", params=TRITONS, ids=lambda folder: folder or "installed")
def mixes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, int]]:
    """Counts of each kernel by its name and architecture."""
    texts = run_on(request.param, tmp_path_factory.mktemp("cache"), PROGRAM, "compile")
    return {name: count(text, "amdgcn" if "gfx" in name else "ptx") for name, text in texts.items()}


@pytest.mark.parametrize("arch", ["80", "90", "gfx942", "gfx1100"])
def test_products_of_matrices_use_their_units(mixes: dict[str, dict[str, int]], arch: str) -> None:
    mix = mixes[f"matmul {arch}"]

    assert mix["mma"] >= 8
    for each in ("global loads", "global stores", "shared loads", "shared stores", "barriers"):
        assert mix[each] > 0
    assert "fp64" not in mix


@pytest.mark.parametrize("arch", ["80", "90", "gfx942", "gfx1100"])
def test_a_softmax_takes_powers_and_exchanges_them(
    mixes: dict[str, dict[str, int]], arch: str
) -> None:
    mix = mixes[f"softmax {arch}"]

    # Each thread of 128, or of 256 where a warp has 64, has its part of 1024 elements.
    assert mix["global loads"] == mix["global stores"] == (4 if arch == "gfx942" else 8)
    assert mix["special"] >= mix["global loads"]
    assert mix["fp32"] > 4 * mix["special"]
    assert "mma" not in mix
    assert mix["barriers"] > 0


def test_only_final_code_has_spilled_registers(mixes: dict[str, dict[str, int]]) -> None:
    # PTX has registers without end; the assembly of AMD is what runs.
    assert mixes["matmul gfx1100"]["local loads"] > 0
    assert mixes["matmul gfx1100"]["local stores"] > 0
    assert "local loads" not in mixes["matmul 80"]


@given(st.lists(st.sampled_from(PTX)), st.lists(st.sampled_from(PTX)))
def test_counts_of_ptx_add_up(first: list[str], second: list[str]) -> None:
    assert_additive("".join(first), "".join(second), "ptx")


@given(st.lists(st.sampled_from(AMDGCN)), st.lists(st.sampled_from(AMDGCN)))
def test_counts_of_amd_assembly_add_up(first: list[str], second: list[str]) -> None:
    assert_additive("".join(first), "".join(second), "amdgcn")


def assert_additive(first: str, second: str, language: str) -> None:
    one, other, both = (count(text, language) for text in (first, second, first + second))
    assert both == {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


@given(
    st.one_of(st.text(), st.text(alphabet='@!.:;{}"/*\n \taddl_$%')),
    st.sampled_from(LANGUAGES),
)
def test_every_text_has_counts(text: str, language: str) -> None:
    found = count(text, language)

    assert sum(found.values()) <= len(text)
    assert all(found.values())


def test_another_assembly_is_refused() -> None:
    with pytest.raises(UsageError, match="choose ptx or amdgcn"):
        count("", "sass")


def test_files_beside_a_statically_loaded_kernel_are_counted(tmp_path: Path) -> None:
    class StaticallyLaunched:
        hash = "00000000000c0de1" + "0" * 48
        cubin_path: str | None = str(tmp_path / "add.cubin")

        def load_kernel(self, device: int) -> int:
            self.cubin_path = None
            return device

    (tmp_path / "add.ptx").write_text("add.f32 a, b, c;")
    module = SimpleNamespace(StaticallyLaunched=StaticallyLaunched, other=1)
    patches = codes.watch_static_launcher(module)  # type: ignore[arg-type]

    assert StaticallyLaunched().load_kernel(3) == 3

    for patch in patches:
        patch.remove()
    assert len(patches) == 1
    assert _native.note_instructions(0xC0DE1, "", "ptx") == {"fp32": 1}


def test_kernels_without_assembly_are_loaded_as_before(tmp_path: Path) -> None:
    codes.note_files("00000000000c0de2", [tmp_path / "gone.ptx", tmp_path / "add.cubin"])

    assert _native.note_instructions(0xC0DE2, "add.f32 a, b, c;", "ptx") == {"fp32": 1}


def test_kernels_that_were_loaded_before_are_counted() -> None:
    kernel: Any = SimpleNamespace(
        function=77, hash="00000000000c0de3", asm={"ptx": "add.f64 a, b, c;", "cubin": b""}
    )

    codes.note(kernel)

    assert _native.note_instructions(0xC0DE3, "", "ptx") == {"fp64": 1}


def test_a_diff_names_the_instructions_that_changed(tmp_path: Path) -> None:
    run_on("", tmp_path / "cache", PROGRAM, "record", str(tmp_path))
    dot, other = (tmp_path / f"{name}.proton" for name in ("dot", "sum"))

    done = subprocess.run(
        [sys.executable, "-m", "proton_bench", "diff", dot, other],
        capture_output=True,
        text=True,
        check=False,
    )

    first = done.stdout.splitlines()[0]
    assert "instructions (" in first, done.stdout + done.stderr
    assert re.search(r"mma \d+ -> 0\b", first)
    merged = merge([read_profile(dot), read_profile(dot)])
    (variant,) = [each for each in merged.variants if each.code_hash]
    assert variant.instructions["mma"] > 0
