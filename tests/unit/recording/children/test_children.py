from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from proton_bench.recording.children.children import (
    AUTOSTART,
    ChildOptions,
    child_name,
    files_of_children,
    follow_children,
    forget_children,
)

OPTIONS = ChildOptions(name="x", folder="/data", formats=("proton",), backend="cpu", mode="a:b")


def test_options_survive_the_way_through_the_environment() -> None:
    text = OPTIONS.to_json()

    assert text.isascii()
    assert ChildOptions.from_json(text) == OPTIONS


@pytest.mark.parametrize("text", ["[]", "{}", '{"formats": [], "unheard_of": 1}'])
def test_options_of_another_release_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="unknown options"):
        ChildOptions.from_json(text)


def test_options_that_were_cut_off_are_refused() -> None:
    with pytest.raises(json.JSONDecodeError):
        ChildOptions.from_json("{")


def test_following_puts_one_folder_in_front_and_forgetting_takes_it_away() -> None:
    environ = {"PYTHONPATH": "/one:/two"}

    follow_children(OPTIONS, environ)
    follow_children(OPTIONS, environ)
    folder, *others = environ["PYTHONPATH"].split(":")

    assert (Path(folder) / "sitecustomize.py").is_file()
    assert others == ["/one", "/two"]
    assert ChildOptions.from_json(environ[AUTOSTART]) == OPTIONS
    forget_children(environ)
    assert environ == {"PYTHONPATH": "/one:/two"}


def test_an_environment_without_a_path_gets_none_back() -> None:
    environ: dict[str, str] = {}

    follow_children(OPTIONS, environ)
    forget_children(environ)

    assert environ == {}


def test_a_child_is_named_by_its_process_or_by_its_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ChildOptions(name="x", folder=str(tmp_path), formats=("proton",))
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")

    assert child_name(options, is_rank=True) == str(tmp_path / "x.rank3")
    assert child_name(options, is_rank=False) == str(tmp_path / f"x.rank3.pid{os.getpid()}")
    (tmp_path / "x.rank3.proton").touch()
    assert child_name(options, is_rank=True) == str(tmp_path / f"x.rank3.pid{os.getpid()}")


def test_files_of_children_are_those_of_this_run(tmp_path: Path) -> None:
    ours = ["x.pid12.proton", "x.rank0.proton", "x.rank1.pid9.part_2.hatchet"]
    others = [
        "x.proton",
        "x.pid12.partial.proton",
        "x.pid12.json",
        "xx.pid1.proton",
        "x.pid.proton",
    ]
    for name in [*ours, *others, "x.pid1.proton"]:
        (tmp_path / name).touch()
    os.utime(tmp_path / "x.pid1.proton", (1, 1))
    started_ns = (tmp_path / "x.proton").stat().st_mtime_ns

    found = files_of_children(str(tmp_path / "x"), ("proton", "hatchet"), started_ns)

    assert [os.path.basename(path) for path in found] == ours
    assert files_of_children("/no/such/folder/x", ("proton",), 0) == []
