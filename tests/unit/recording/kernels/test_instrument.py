"""Passes go to a backend that takes them, and an unnamed backend stays unnamed."""

from __future__ import annotations

import pytest

from proton_bench.errors import UsageError
from proton_bench.recording.kernels.instrument import add_passes, join_passes

pytest.importorskip("proton_bench._native")


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for vendor in ("CUDA", "HIP", "ROCR"):
        monkeypatch.setenv(f"{vendor}_VISIBLE_DEVICES", "")


def test_default_backend_that_takes_passes_needs_no_name() -> None:
    assert add_passes(None, None, "loops,loads") == (None, "cpu:passes=loops%2Cloads")
    assert add_passes("cpu", "cpu:depth=1", "loops") == ("cpu", "cpu:depth=1:passes=loops")


def test_wrong_mode_says_why_the_backend_is_cpu() -> None:
    with pytest.raises(UsageError, match="Backend 'cpu' was chosen because no GPU was found"):
        add_passes(None, "default", "loops")


def test_option_given_several_times_is_joined() -> None:
    assert join_passes("--instrument", ["loops", "loads:line=3,dots"]) == "loops,loads:line=3,dots"
    assert join_passes("--instrument", []) == ""


@pytest.mark.parametrize("given", [[""], ["loops", " "]])
def test_option_without_a_pass_is_refused(given: list[str]) -> None:
    with pytest.raises(UsageError, match="--instrument names no pass"):
        join_passes("--instrument", given)
