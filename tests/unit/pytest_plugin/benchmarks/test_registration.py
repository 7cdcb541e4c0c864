from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from proton_bench.errors import UsageError
from proton_bench.pytest_plugin.benchmarks.registration import check_devices, visible_gpus
from proton_bench.recording.gpu import nvidia

ASKS: Any = SimpleNamespace(asks=True)


@pytest.mark.parametrize(
    ("variable", "found"),
    [
        ("", ()),
        ("-1", ()),
        ("0", ("0",)),
        ("3, 1", ("3", "1")),
        ("GPU-a,MIG-b", ("GPU-a", "MIG-b")),
    ],
)
def test_gpus_are_those_that_the_environment_shows(
    monkeypatch: pytest.MonkeyPatch, variable: str, found: tuple[str, ...]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", variable)

    assert visible_gpus() == found


def test_else_gpus_are_those_of_the_driver_by_what_never_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(nvidia, "gpu_facts", lambda: [{"uuid": "GPU-x"}, {}])

    assert visible_gpus() == ("GPU-x", "1")


def test_workers_take_one_gpu_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")

    assert check_devices(ASKS, ["popen"] * 2) == ("0", "1")
    assert check_devices(ASKS, ["2*popen//python=x"]) == ("0", "1")
    with pytest.raises(UsageError, match=r"3 workers .* there are 2 GPUs: .* use -n 2"):
        check_devices(ASKS, ["popen", "2*popen"])


def test_without_gpus_or_without_a_question_workers_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert check_devices(ASKS, ["9*popen"]) == ()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert check_devices(SimpleNamespace(asks=False), ["9*popen"]) == ()  # type: ignore[arg-type]
