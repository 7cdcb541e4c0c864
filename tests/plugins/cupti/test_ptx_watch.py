"""The PTX of kernels that Triton loads, on its way to the native core."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proton_bench import _native
from proton_bench_plugins.cupti.collector import PtxWatch

knobs = pytest.importorskip("triton.knobs")

Noted = list[tuple[bytes, str]]


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Noted:
    found: Noted = []
    monkeypatch.setattr(_native, "note_ptx", lambda image, ptx: found.append((image, ptx)))
    return found


def load(metadata_group: Any) -> None:
    """Do what Triton does once it has loaded a kernel."""
    knobs.runtime.kernel_load_end_hook(None, 0, "add", metadata_group, "a hash")


def group(folder: Path, **texts: bytes) -> dict[str, str]:
    """Return files of a kernel as Triton's cache has them, by their ends."""
    for end, content in texts.items():
        (folder / f"add.{end}").write_bytes(content)
    return {f"add.{end}": str(folder / f"add.{end}") for end in texts}


def test_the_ptx_of_a_loaded_kernel_is_noted_during_a_watch(tmp_path: Path, noted: Noted) -> None:
    files = group(tmp_path, cubin=b"\x7fELF", ptx=b"// caf\xc3\xa9", ttir=b"module {}")
    watch = PtxWatch()
    load(files)
    watch.attach()
    load(files)
    watch.detach()
    load(files)

    assert noted == [(b"\x7fELF", "// café")]


def test_kernels_without_ptx_or_files_are_left_alone(tmp_path: Path, noted: Noted) -> None:
    watch = PtxWatch()
    watch.attach()
    try:
        load(group(tmp_path, hsaco=b"\x7fELF", amdgcn=b""))
        load({"add.cubin": str(tmp_path / "gone.cubin"), "add.ptx": str(tmp_path / "gone.ptx")})
        load({"add.cubin": None, "add.ptx": None})
        load(None)
    finally:
        watch.detach()

    assert noted == []
