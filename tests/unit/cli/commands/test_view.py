from __future__ import annotations

import pytest
from typer.testing import CliRunner

from proton_bench.cli.app import build_app
from proton_bench.errors import UsageError


@pytest.mark.parametrize(
    "options",
    ["-m count", "-t 5", "-d 3", "-f full", "--bars", "--all", "--whole", "--raw-names", "--flat"],
)
def test_the_last_seconds_take_no_options_of_the_tree(options: str) -> None:
    words = ["view", "missing.proton", "--watch", "--once", *options.split()]

    done = CliRunner().invoke(build_app(["view"]), words)

    assert isinstance(done.exception, UsageError)
    assert "--watch" in str(done.exception)
