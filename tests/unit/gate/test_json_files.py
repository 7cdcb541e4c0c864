"""Files of an experiment that are not JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from proton_bench.errors import ProfileFormatError
from proton_bench.gate.runs import read_json


@pytest.mark.parametrize("content", [b"", b"\xff", b'{"a": "\xff"}', b"[" * 100_000, b"{} {}"])
def test_what_is_not_json_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)

    with pytest.raises(ProfileFormatError, match="JSON"):
        read_json(tmp_path / "a.json")
