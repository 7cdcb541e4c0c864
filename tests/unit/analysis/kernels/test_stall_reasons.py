"""Every reason that a sample may have is explained, with the vendor's page."""

from __future__ import annotations

import pytest
from fakes.samples import REASONS

from proton_bench.analysis.kernels.stall_reasons import (
    AMD_SOURCE,
    NVIDIA_SOURCE,
    explain_stall,
    stall_reasons,
)

NVIDIA_REASONS = (*REASONS, "gmma")  # which only GPUs with matrix units of warp groups have


@pytest.mark.parametrize("name", NVIDIA_REASONS)
def test_every_reason_of_an_nvidia_gpu_is_explained(name: str) -> None:
    reason = explain_stall(f"stalled_{name}")

    assert reason is not None
    assert reason.metric == f"stalled_{name}"
    assert reason.source == NVIDIA_SOURCE
    assert reason.meaning


def test_what_upstream_calls_a_reason_is_the_same_reason() -> None:
    assert explain_stall("stalled_not_Selected") == explain_stall("not_selected")


def test_reasons_of_amd_gpus_name_that_vendors_page() -> None:
    sources = {reason.source for reason in stall_reasons() if reason.name not in NVIDIA_REASONS}

    assert sources == {AMD_SOURCE}


def test_what_is_not_a_reason_is_not_explained() -> None:
    assert explain_stall("stalled_by_magic") is None
    assert explain_stall("num_samples") is None
