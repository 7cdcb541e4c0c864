from __future__ import annotations

import os

import pytest

from proton_bench.cli.options import read_output
from proton_bench.errors import UsageError


def test_the_default_name_is_proton() -> None:
    assert os.path.basename(read_output(None, None).name) == "proton"


def test_output_takes_the_format_from_its_suffix() -> None:
    assert read_output(None, "/data/x.hatchet").formats == ("hatchet",)
    assert read_output(None, "/data/x.hatchet").name == "/data/x"


def test_output_without_a_suffix_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"'x\.txt'.*\.proton, \.hatchet, \.hatchet_msgpack"):
        read_output(None, "x.txt")


def test_name_and_output_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        read_output("x", "x.proton")
