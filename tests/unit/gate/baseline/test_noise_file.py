from __future__ import annotations

import json
from pathlib import Path

import pytest

from proton_bench.errors import ProtonError
from proton_bench.gate.baseline.noise_file import read_noise
from proton_bench.gate.machine.noise import Noise, PathNoise, Spread


def test_noise_comes_back_as_it_was(tmp_path: Path) -> None:
    path = PathNoise(("k",), 0, "median", Spread(1e-5, 8.0), Spread(2e-5, 8.0))
    noise = Noise({"host": "here"}, (path,), 10)
    file = tmp_path / "noise.json"
    file.write_text(json.dumps(noise.to_document()))

    assert read_noise(file) == noise


@pytest.mark.parametrize(
    "content", [None, b"", b"\xff", b"{}", b"[1]", b'{"schema": "x"}', b'{"schema": "\xff"}']
)
def test_what_is_not_noise_is_refused(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "noise.json"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(ProtonError, match="noise") as caught:
        read_noise(file)
    assert caught.value.exit_code == 2
