"""Scopes inside kernels: host scopes where Python runs them, nothing where they are compiled."""

from __future__ import annotations

import importlib
import inspect
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from capture_fixtures import FakeBackends, child, names, read_tree

import proton_bench as proton
import proton_bench.language as pl
from proton_bench.capture.metric import add_scope_metrics
from proton_bench.capture.native import native


def test_scope_in_python_is_a_host_scope(tmp_path: Path, fakes: FakeBackends) -> None:
    session = proton.start(tmp_path / "x")

    with pl.scope("outer"):
        pl.enter_scope("inner")
        add_scope_metrics({"n": 1})
        pl.exit_scope("inner")

    assert child(proton.data.get(session)[0], "outer", "inner")["metrics"] == {"n": 1}
    assert native.thread_depth() == 0


def test_compiled_scope_touches_nothing(tmp_path: Path, fakes: FakeBackends) -> None:
    session = proton.start(tmp_path / "x")
    compiler = object()

    with pl.scope("k", _semantic=compiler):
        pl.enter_scope("inner", _semantic=compiler)
        depth = proton.context.depth(session)
        pl.exit_scope("inner", _semantic=compiler)

    assert depth == 0


def test_compiler_takes_the_functions_for_builtins() -> None:
    for function in (pl.enter_scope, pl.exit_scope):
        assert function.__triton_builtin__  # type: ignore[attr-defined]
        assert "_semantic" in inspect.signature(function).parameters


@pytest.mark.parametrize("function", [pl.enable_semantic, pl.disable_semantic])
def test_semantics_are_triton_and_gluon(function: Callable[[str], None]) -> None:
    function("triton")
    function("gluon")

    with pytest.raises(ValueError, match="Unknown semantic: cuda; choose from: triton, gluon"):
        function("cuda")


KERNEL = """
import triton
import triton.language as tl
import proton_bench.language as pl

@triton.jit
def copy(source, target, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    with pl.scope("load"):
        values = tl.load(source + offsets)
    pl.enter_scope("store")
    tl.store(target + offsets, values)
    pl.exit_scope("store")

@triton.jit
def plain(source, target, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    values = tl.load(source + offsets)
    tl.store(target + offsets, values)
"""


def test_compiled_kernel_is_the_same_with_and_without_scopes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    triton = pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "scoped_kernels.py").write_text(KERNEL)
    scoped_kernels = importlib.import_module("scoped_kernels")

    def lines(kernel: object) -> list[str]:
        source = ASTSource(
            kernel, {"source": "*fp32", "target": "*fp32", "BLOCK": "constexpr"}, {"BLOCK": 64}
        )
        compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
        text = str(compiled.asm["ttgir"]).replace("@copy", "@plain")
        return [line.partition(" loc(")[0] for line in text.splitlines() if "#loc" not in line[:4]]

    assert lines(scoped_kernels.copy) == lines(scoped_kernels.plain)


def test_interpreted_kernel_has_host_scopes(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    pytest.importorskip("torch")
    (tmp_path / "scoped_kernels.py").write_text(KERNEL)
    program = """
        import torch, scoped_kernels, proton_bench as proton
        proton.start("run", backend="cpu")
        source, target = torch.arange(64.0), torch.empty(64)
        scoped_kernels.copy[(2,)](source, target, BLOCK=64)
        assert torch.equal(source, target)
        proton.finalize()
    """

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    kernel = child(read_tree(tmp_path / "run.hatchet"), "copy")
    assert names(kernel) == ["load", "store"]
    assert child(kernel, "load")["metrics"]["wall (ns)"] > 0
