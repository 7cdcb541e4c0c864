"""Interpreted kernels, where a session has shapes."""

from __future__ import annotations

from typing import Any

import pytest

from proton_bench.recording.native import native
from proton_bench_plugins.cpu import interpreter
from proton_bench_plugins.cpu.interpreter import Launch


class Tensor:
    dtype = "torch.float32"
    shape = (2, 3)


@pytest.mark.parametrize(
    ("are_read", "signature"), [(True, "x:*float32[2,3]"), (False, "x:*float32")]
)
def test_signatures_have_sizes_where_a_session_has_shapes(
    monkeypatch: pytest.MonkeyPatch, *, are_read: bool, signature: str
) -> None:
    facts: Any = {"x": Tensor()}
    launch = Launch("k", lambda: None, facts, (1,), {}, frozenset())
    assert interpreter._native is native
    monkeypatch.setattr(native, "are_inputs_read", lambda: are_read)

    assert launch.variant()["signature"] == signature
