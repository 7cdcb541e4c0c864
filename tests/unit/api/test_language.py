"""Scopes inside kernels: host scopes where Python runs them, nothing where they are compiled."""

from __future__ import annotations

import importlib
import inspect
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import cast

import pytest
from capture_fixtures import FakeBackends, child, names, read_tree

import proton_bench as proton
import proton_bench.language as pl
from proton_bench.errors import UsageError
from proton_bench.flags import flags
from proton_bench.recording.context.metric import add_scope_metrics
from proton_bench.recording.kernels.kernel_records import MODE_PREFIX
from proton_bench.recording.native import native


@pytest.fixture(autouse=True)
def accepted_languages() -> Iterator[None]:
    yield
    pl.enable_semantic("gluon")
    pl.disable_semantic("triton")


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


class GluonSemantic:
    """What Gluon's compiler calls builtins with."""

    def __init__(self, mode: str) -> None:
        self.builder = SimpleNamespace(options=SimpleNamespace(instrumentation_mode=mode))


class TritonSemantic(GluonSemantic):
    pass


@pytest.fixture
def emitted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, str]]:
    """Records that reach the compiler, while a session asks for them."""
    found: list[tuple[bool, str]] = []

    def create(builder: object, is_start: bool, name: str) -> None:
        found.append((is_start, name))

    library = SimpleNamespace(proton=SimpleNamespace(create_proton_record=create))
    monkeypatch.setitem(sys.modules, "triton._C.libtriton", cast("ModuleType", library))
    monkeypatch.setattr(flags, "instrumentation_on", True)
    return found


def test_compiled_scope_is_a_pair_of_records(emitted: list[tuple[bool, str]]) -> None:
    semantic = GluonSemantic(f"{MODE_PREFIX}digest")

    with pl.scope("k", _semantic=semantic):
        pl.record(is_start=True, scope_name="inner", semantic=semantic)

    assert emitted == [(True, "k"), (True, "inner"), (False, "k")]


def test_a_name_may_be_a_constant_of_the_kernel(emitted: list[tuple[bool, str]]) -> None:
    pl.enter_scope(SimpleNamespace(value="tile"), _semantic=GluonSemantic(MODE_PREFIX))

    assert emitted == [(True, "tile")]


@pytest.mark.parametrize("mode", ["", "default:x", "consan"])
def test_a_compile_that_no_session_asked_for_gets_no_records(
    emitted: list[tuple[bool, str]], mode: str
) -> None:
    pl.enter_scope("k", _semantic=GluonSemantic(mode))
    pl.enter_scope("k", _semantic=TritonSemantic(mode))

    assert emitted == []


def test_tritons_own_language_must_be_accepted_first(emitted: list[tuple[bool, str]]) -> None:
    semantic = type("TritonSemantic", (), {"builder": GluonSemantic(MODE_PREFIX).builder})()

    with pytest.raises(UsageError, match=r"Unsupported semantic type: TritonSemantic"):
        pl.enter_scope("k", _semantic=semantic)
    pl.enable_semantic("triton")
    pl.enter_scope("k", _semantic=semantic)

    assert emitted == [(True, "k")]


def test_gluon_can_be_refused(emitted: list[tuple[bool, str]]) -> None:
    pl.disable_semantic("gluon")

    with pytest.raises(UsageError, match="accepted: none"):
        pl.enter_scope("k", _semantic=GluonSemantic(MODE_PREFIX))

    assert emitted == []


def test_events_in_python_are_host_scopes_that_nest(tmp_path: Path, fakes: FakeBackends) -> None:
    pytest.importorskip("triton")
    session = proton.start(tmp_path / "x")
    first, second = pl.allocate_event("first"), pl.allocate_event("second")

    pl.start_event(first)
    pl.start_event(second)
    add_scope_metrics({"n": 1})
    pl.end_event(first)
    pl.end_event(second)

    assert isinstance(first, pl.Event)
    assert child(proton.data.get(session)[0], "first", "second")["metrics"] == {"n": 1}
    assert native.thread_depth() == 0


def test_only_events_can_be_started() -> None:
    pytest.importorskip("triton")

    with pytest.raises(UsageError, match="expected an event returned by allocate_event, not a str"):
        pl.start_event("load")  # type: ignore[arg-type]


def test_events_are_refused_by_a_compiler_without_them(emitted: list[tuple[bool, str]]) -> None:
    pytest.importorskip("triton")

    with pytest.raises(UsageError, match=r"event 'copy': the compiler of this Triton .* no events"):
        pl.allocate_event("copy", _semantic=GluonSemantic(MODE_PREFIX))

    assert emitted == []


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
