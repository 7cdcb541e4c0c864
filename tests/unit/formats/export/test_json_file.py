from __future__ import annotations

import pytest

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.export.json_file import JsonFile


@pytest.mark.parametrize(
    "text", ['{"cells": [], "nbformat": 4}', "{}", '{"schema": 7}', "[3]", "7", '"a"', "null"]
)
def test_json_of_another_tool_is_not_called_damaged(text: str) -> None:
    with pytest.raises(ProfileFormatError, match=r"is of no known tool .*; name a profile$"):
        JsonFile().decode(text.encode(), "other.json")


@pytest.mark.parametrize(
    "text", ['{"schema": "proton_bench.profile.json", "ver', "[3", "", "{'a'}"]
)
def test_what_is_no_json_is_damaged(text: str) -> None:
    with pytest.raises(ProfileFormatError, match="damaged; write it again"):
        JsonFile().decode(text.encode(), "other.json")
