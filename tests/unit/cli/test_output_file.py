from __future__ import annotations

from pathlib import Path

import pytest

from proton_bench.cli.files import beside, refuse_input
from proton_bench.errors import UsageError


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("run.proton", "run.html"),
        ("run.partial.proton", "run.partial.html"),
        ("a/b.hatchet_msgpack", "a/b.html"),
        ("run.txt", "run.txt.html"),
        (".proton", ".proton.html"),
    ],
)
def test_suffix_of_a_known_format_is_exchanged(name: str, expected: str) -> None:
    assert beside(Path(name), ".html") == Path(expected)


def test_input_is_never_the_output(tmp_path: Path) -> None:
    file, link = tmp_path / "x.proton", tmp_path / "link"
    file.write_text("x")
    link.symlink_to(file)

    with pytest.raises(UsageError, match="is an input"):
        refuse_input(link, [tmp_path / "other", file])


@pytest.mark.parametrize(("target", "source"), [("new.html", "x.proton"), ("-", "-")])
def test_other_files_and_stdout_are_written(target: str, source: str) -> None:
    assert refuse_input(Path(target), [Path(source)]) is None
