"""``proton history`` and ``proton gate --history`` on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.histories import recorded, revision
from fakes.stored import other_gpu, put
from published import published

from proton_bench.cli import main
from proton_bench.gate.baselines import BaselineStore
from proton_bench.gate.history.history import read_acknowledged

COUNT, STEP = 20, 12
Proton = Callable[..., tuple[int, str, str]]


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    (tmp_path / "pyproject.toml").touch()
    return BaselineStore(tmp_path / ".proton")


@pytest.fixture
def proton(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Proton:
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> tuple[int, str, str]:
        code = main([*map(str, words)])
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return run


@pytest.fixture
def slower(store: BaselineStore) -> BaselineStore:
    """Save runs hour by hour; one path gets 6 % slower."""
    for number, run in enumerate(recorded(COUNT, {"b": (STEP, 0.06)})):
        store.save("main", [run])
        if number % 5 == 0:
            store.promote("main")
    return store


def test_saved_runs_form_a_history(slower: BaselineStore, proton: Proton) -> None:
    code, out, err = proton("history")

    assert (code, err) == (0, "")
    entry = slower.entries("main")[STEP]
    assert f"from {entry.reference}, revision {revision(STEP)[:12]}" in out
    assert "step > b" in out


def test_the_gate_fails_until_the_step_is_acknowledged(
    slower: BaselineStore, proton: Proton
) -> None:
    assert proton("gate", "--history")[0] == 1
    assert proton("gate", "--history", "main")[0] == 1

    code, out, err = proton("history", "--acknowledge", "--json")

    assert (code, err.count("\n")) == (0, 1)
    shown = published(out)
    assert shown["verdict"] == "PASS"
    assert not any(step["fails"] for each in shown["series"] for step in each["steps"])
    code, out, _ = proton("gate", "--history")
    assert (code, out.startswith("PASS: ")) == (0, True)
    known, whole = sorted(
        read_acknowledged(slower.folder).values(), key=lambda each: each.path, reverse=True
    )
    assert (known.path, known.metric) == (("step", "b"), "median")
    assert (whole.path, whole.metric) == ((), "total")
    assert "@" in known.by
    assert known.at_ns > 0
    assert known.revision == revision(COUNT - 1)


def test_a_later_step_fails_again(slower: BaselineStore, proton: Proton) -> None:
    proton("history", "--acknowledge")
    more = recorded(COUNT + 12, {"b": (STEP, 0.06), "c": (COUNT, 0.1)}, seed=3)[COUNT:]
    for run in more:
        slower.save("main", [run])

    code, out, _ = proton("gate", "--history", "--json")

    document = published(out)
    assert (code, document["exit_code"], document["verdict"]) == (1, 1, "FAIL")
    failing = [
        each["path"][-1:] for each in document["series"] if any(s["fails"] for s in each["steps"])
    ]
    assert failing == [["c"], []]  # and the whole run


def test_acknowledging_one_path_leaves_the_others(store: BaselineStore, proton: Proton) -> None:
    for run in recorded(COUNT, {"b": (STEP, 0.06), "c": (STEP, 0.1)}):
        store.save("main", [run])

    proton("history", "--acknowledge", "--path", "**/b")

    known = {each.path for each in read_acknowledged(store.folder).values()}
    assert known == {("step", "b"), ()}  # the whole run is around it
    assert proton("gate", "--history")[0] == 1
    proton("history", "--acknowledge", "--path", "c")
    assert proton("gate", "--history")[0] == 0


def test_files_form_a_history_in_order_of_time(proton: Proton, tmp_path: Path) -> None:
    folder = put(tmp_path / "nightly", *recorded(COUNT, {"b": (STEP, 0.06)}))
    files = sorted(folder.iterdir(), key=lambda file: file.name)  # 0, 1, 10, 11, ...

    code, out, _ = proton("history", "--path", "b", *files)

    assert code == 0
    assert f"/{STEP}.proton, revision {revision(STEP)[:12]}" in out
    assert "series got worse" in out


def test_a_folder_is_one_point(proton: Proton, tmp_path: Path) -> None:
    runs = recorded(3 * COUNT, {"b": (3 * STEP, 0.06)})
    for number in range(COUNT):
        put(tmp_path / f"night{number:02}", *runs[3 * number : 3 * number + 3])

    code, out, _ = proton("history", "--json", *sorted(tmp_path.glob("night*")))

    series = published(out)["series"][0]
    assert code == 0
    assert (len(series["points"]), series["points"][0]["runs"]) == (COUNT, 3)
    assert series["steps"][0]["first_after"]["source"] == str(tmp_path / f"night{STEP}")


def test_a_folder_alone_is_told_to_be_one_point(proton: Proton, tmp_path: Path) -> None:
    folder = put(tmp_path / "weekly", *recorded(4, {}))

    code, _, err = proton("gate", "--history", folder)

    assert code == 5
    assert f"{folder}/*.proton" in err
    assert proton("gate", "--history", *folder.iterdir())[2] == ""


def test_another_gpu_makes_no_step(store: BaselineStore, proton: Proton) -> None:
    for run in recorded(COUNT, {}):
        store.save("main", [run])
    slow = dict.fromkeys("abcd", (0, 0.5))
    for run in recorded(2 * COUNT, slow, **other_gpu(uuid="GPU-2"))[COUNT:]:
        store.save("main", [run])

    code, out, _ = proton("history", "--json")

    series = published(out)["series"]
    assert (code, len(series)) == (0, 10)
    assert not any(each["steps"] for each in series)
    assert proton("gate", "--history")[0] == 0


def test_a_page_is_written_beside_the_table(slower: BaselineStore, proton: Proton) -> None:
    code, out, _ = proton("history", "--html", "page.html")

    page = Path("page.html").read_text(encoding="utf-8")
    assert (code, page.startswith("<!doctype html>")) == (0, True)
    assert "step &gt; b" in page
    assert "step > b" in out
    _, printed, _ = proton("history", "--html", "-")
    assert printed == page


@pytest.mark.parametrize(
    "words",
    [
        ("history", "nothing"),
        ("history", "--json", "--html", "-"),
        ("gate", "--history", "nothing"),
        ("gate", "--history", "--junit", "x.xml"),
        ("gate", "--history", "main", "--base", "main"),
        ("gate", "--history", "--strict"),
        ("gate", "--history", "--inconclusive", "pass"),
        ("gate", "--history", "-b", "cupti"),
        ("gate", "--history", "--runs", "3", "--", "bench.py"),
    ],
)
def test_wrong_usage_is_one_line(
    slower: BaselineStore, proton: Proton, words: tuple[str, ...]
) -> None:
    code, out, err = proton(*words)

    assert (code, out, err.count("\n")) == (2, "", 1)


def test_paths_that_no_run_has_are_refused(slower: BaselineStore, proton: Proton) -> None:
    code, out, err = proton("history", "--path", "nosuch/*")

    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "'nosuch/*'" in err


def test_an_empty_project_has_no_history(store: BaselineStore, proton: Proton) -> None:
    for words in (("history",), ("gate", "--history"), ("history", "--acknowledge")):
        code, out, err = proton(*words)
        assert (code, out, err.count("\n")) == (2, "", 1)
    assert not store.folder.exists()


def test_too_short_a_history_does_not_pass(store: BaselineStore, proton: Proton) -> None:
    for run in recorded(5, {}):
        store.save("main", [run])

    assert proton("history")[0] == 0
    assert proton("gate", "--history")[0] == 5


def test_the_policy_of_the_project_counts(slower: BaselineStore, proton: Proton) -> None:
    Path("pyproject.toml").write_text('[tool.proton.gate]\nquarantine = ["b"]\n', encoding="utf-8")

    code, out, _ = proton("gate", "--history")

    assert code == 0
    assert "step > b" in out
