"""The PTX of our kernels matches the sources, and every Triton's assembler accepts it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

DEVICE = Path(__file__).parents[5] / "native" / "src" / "collector" / "instrumentation" / "device"
TARGETS = ("sm_80", "sm_90", "sm_100")


def make_ptx() -> ModuleType:
    """Import the script beside the sources."""
    spec = importlib.util.spec_from_file_location("make_ptx", DEVICE / "make_ptx.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assemblers() -> list[Path]:
    """Return ptxas of the installed Triton and of those in PROTON_BENCH_TRITONS."""
    folders = [Path(each) for each in os.environ.get("PROTON_BENCH_TRITONS", "").split(":") if each]
    found = importlib.util.find_spec("triton")
    if found is not None and found.origin is not None:
        folders.append(Path(found.origin).parents[1])
    candidates = [each / "triton" / "backends" / "nvidia" / "bin" / "ptxas" for each in folders]
    return [each for each in candidates if each.exists()]


def test_the_code_is_of_the_present_sources() -> None:
    script = make_ptx()

    first = (DEVICE / "reduce_records.ptx").read_text(encoding="utf-8").splitlines()[0]

    assert first.split()[-1] == script.digest(), "run make_ptx.py"


def test_comments_do_not_count_as_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = make_ptx()
    source = tmp_path / "a.cu"
    monkeypatch.setattr(script, "source_files", lambda: [source])
    source.write_text("int a; // one\n", encoding="utf-8")
    plain = script.digest()

    source.write_text("int  a; // another\n", encoding="utf-8")
    same = script.digest()
    source.write_text("int b;\n", encoding="utf-8")

    assert same == plain
    assert script.digest() != plain


def test_old_drivers_take_the_code() -> None:
    text = (DEVICE / "reduce_records.ptx").read_text(encoding="utf-8")

    assert ".version 7.0\n.target sm_80\n" in text
    assert all(f".entry {name}" in text for name in ("proton_bench_reduce", "proton_bench_harvest"))


@pytest.mark.parametrize("target", TARGETS)
def test_every_assembler_takes_the_code(target: str, tmp_path: Path) -> None:
    found = assemblers()
    if not found:
        pytest.skip("no Triton with an assembler is installed")

    complaints = {}
    for ptxas in found:
        command = [str(ptxas), f"-arch={target}", str(DEVICE / "reduce_records.ptx")]
        command += ["-o", str(tmp_path / "code.cubin")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            complaints[str(ptxas)] = done.stderr

    assert complaints == {}
