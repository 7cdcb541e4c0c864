from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.nvml import Error, FakeNvml, write_smi

from proton_bench.capture.nvidia import newest_capability


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    newest_capability.cache_clear()
    yield
    newest_capability.cache_clear()


def test_the_management_library_tells_the_capability(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = FakeNvml(DeviceGetCudaComputeCapability=(10, 3))
    monkeypatch.setitem(sys.modules, "pynvml", nvml)  # type: ignore[arg-type]

    assert newest_capability() == 103
    assert not nvml.is_open


@pytest.mark.parametrize(("answer", "capability"), [("12.0", 120), ("[N/A]", 0)])
def test_nvidia_smi_is_asked_without_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str, capability: int
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(Init=Error("none")))  # type: ignore[arg-type]
    write_smi(tmp_path, {"compute_cap": answer})
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    assert newest_capability() == capability


def test_without_anybody_to_ask_it_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setenv("PATH", "/no/folder")

    assert newest_capability() == 0
