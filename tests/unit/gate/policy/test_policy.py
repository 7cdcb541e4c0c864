from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from proton_bench.errors import UsageError
from proton_bench.gate.policy.policy import Policy, policy_from_table, read_policy

EVERYTHING = """
[tool.proton.gate]
thresholds = ["median:3%", "fwd/**/softmax*@p95:10%", "calls:0"]
threshold = "4%"
share = "1%"
floor = "2us"
total-floor = "0.2%"
runs = 6
undecided-share = "10%"
inconclusive = "pass"
strict = true
same-binary = "fail"
ignore-devices = true
raw-names = true
quarantine = ["**/flaky*"]
"""


def written(folder: Path, text: str, name: str = "pyproject.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_every_key_of_a_pyproject(tmp_path: Path) -> None:
    policy = read_policy(written(tmp_path, EVERYTHING))

    assert [str(each) for each in policy.thresholds] == [
        "median:3%",
        "fwd/**/softmax*@p95:10%",
        "calls:0",
    ]
    assert (policy.threshold, policy.share, policy.floor_ns) == (0.04, 0.01, 2000.0)
    assert (policy.total_floor, policy.runs, policy.undecided_share) == (0.002, 6, 0.1)
    assert policy.inconclusive_passes
    assert policy.strict
    assert policy.same_binary_fails
    assert policy.ignore_devices
    assert policy.raw_names
    assert policy.quarantine == ("**/flaky*",)


def test_a_file_of_its_own_needs_no_table(tmp_path: Path) -> None:
    path = written(tmp_path, 'thresholds = "median:3%"\nfloor = "0"\n', "gate.toml")

    policy = read_policy(path)

    assert str(policy.thresholds[0]) == "median:3%"
    assert policy.floor_ns == 0.0


def test_a_pyproject_of_others_has_the_default(tmp_path: Path) -> None:
    assert read_policy(written(tmp_path, '[project]\nname = "x"\n')) == Policy()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("thresholds = [,]\n", "line 1, column"),
        ("[tool.proton]\ngate = 3\n", "gate"),
        ("[tool.proton.gate]\ntreshold = 1\n", "'treshold'.* floor, ignore"),
        (
            "[tool.proton.gate]\nthresholds = ['mean:5q']\n",
            "'mean:5q', column 7",
        ),
        ("[tool.proton.gate]\nthresholds = [3]\n", ": thresholds: "),
        ("[tool.proton.gate]\nshare = '120%'\n", ": share: '120%'"),
        ("[tool.proton.gate]\nshare = true\n", ": share: "),
        ("[tool.proton.gate]\nshare = 'x'\n", ": share: 'x'"),
        ("[tool.proton.gate]\nshare = nan\n", ": share: "),
        ("[tool.proton.gate]\nfloor = 3\n", ": floor: "),
        ("[tool.proton.gate]\nfloor = '3%'\n", ": floor: '3%'"),
        ("[tool.proton.gate]\nruns = 1\n", ": runs: .* 2 to 200"),
        ("[tool.proton.gate]\nruns = 4.5\n", ": runs: "),
        ("[tool.proton.gate]\nstrict = 'yes'\n", ": strict: 'yes'"),
        ("[tool.proton.gate]\nfdr = 'bh'\n", ": fdr is not a key any more: `threshold`"),
        ("[tool.proton.gate]\nmargin = 0.01\n", ": margin is not a key any more: `threshold`"),
        ("[tool.proton.gate]\nlevel = 0.01\n", ": level is not a key any more: `threshold`"),
        ("[tool.proton.gate]\nsession-shift = 0.01\n", ": session-shift is not .* in turn"),
        ("[tool.proton.gate]\ninconclusive = true\n", ": inconclusive: .* fail, pass"),
    ],
)
def test_messages_say_where_and_what(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        read_policy(written(tmp_path, text))

    assert "pyproject.toml" in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=os.strerror(errno.ENOENT)):
        read_policy(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"binary\.toml"):
        read_policy(tmp_path / "binary.toml")


@pytest.mark.parametrize("table", [None, 3, ["x"], "median:3%"])
def test_a_table_is_a_table(table: Any) -> None:
    with pytest.raises(UsageError, match="here"):
        policy_from_table(table, "here")


def test_thresholds_of_the_command_line_come_last() -> None:
    policy = policy_from_table({"thresholds": ["median:3%"]}, "here").with_thresholds(["mean:1%"])

    settled = policy.with_marked(())
    assert [str(each) for each in settled.thresholds] == ["median:3%", "mean:1%"]
    with pytest.raises(UsageError, match="column 1"):
        policy.with_thresholds(["%"])


def test_the_default_threshold_is_that_of_the_policy() -> None:
    assert str(Policy().default_threshold()) == "median:3%"


@pytest.mark.parametrize("table", ["gates", "Gate", "gate_"])
def test_a_misspelt_table_does_not_fall_back_to_defaults(tmp_path: Path, table: str) -> None:
    file = written(tmp_path, f'[tool.proton.{table}]\nthreshold = "1%"\n')

    with pytest.raises(UsageError, match=r"\[tool.proton.gate\]"):
        read_policy(file)


def test_other_tables_of_the_project_are_accepted(tmp_path: Path) -> None:
    assert read_policy(written(tmp_path, "[tool.proton.colours]\na = 1\n")) == Policy()


def test_keys_outside_of_the_table_are_not_dropped(tmp_path: Path) -> None:
    file = written(tmp_path, 'strict = true\n[tool.proton.gate]\nthreshold = "8%"\n', "gate.toml")

    with pytest.raises(UsageError, match="strict"):
        read_policy(file)


@pytest.mark.parametrize("value", ["", [""], ["a", "  "]])
def test_an_empty_glob_does_not_quarantine_everything(value: Any) -> None:
    with pytest.raises(UsageError, match="quarantine"):
        policy_from_table({"quarantine": value}, "x")


@pytest.mark.parametrize("value", ["-1us", "~1us", "1us&2us", "1us&3%", "5%", "us", "1e400s", 5])
def test_a_floor_is_one_time(value: Any) -> None:
    with pytest.raises(UsageError, match="floor"):
        policy_from_table({"floor": value}, "x")


@pytest.mark.parametrize(
    ("value", "floor"), [("0", 0.0), ("0us", 0.0), ("1.5 us", 1500.0), (".5ms", 5e5)]
)
def test_a_floor_may_be_nothing(value: str, floor: float) -> None:
    assert policy_from_table({"floor": value}, "x").floor_ns == floor


@pytest.mark.parametrize("key", ["share", "total-floor", "undecided-share"])
@pytest.mark.parametrize("value", [0, 0.0, "0", "0%", "0.0 %"])
def test_parts_that_may_be_nothing(key: str, value: Any) -> None:
    policy = policy_from_table({key: value}, "x")

    assert getattr(policy, key.replace("-", "_")) == 0.0


def test_a_threshold_of_every_path_holds_beside_thresholds_of_some() -> None:
    both = policy_from_table({"threshold": "9%", "thresholds": ["k@p95:3%"]}, "x")
    own = policy_from_table({"threshold": "9%", "thresholds": ["median:3%"]}, "x")

    assert [str(each) for each in both.thresholds] == ["median:9%", "k@p95:3%"]
    assert [str(each) for each in own.thresholds] == ["median:3%"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a." * 100 + "a = 1", "100 parts"),
        ('"a" . ' * 100 + "a = 1", "100 parts"),
        ("# x\n" * 200_000, "512 KiB"),
        ("share = " + "1" * 5000, r"policy\.toml"),
        ("thresholds = ['median:" + "1%&" * 9 + "1%']", ": thresholds: "),
    ],
)
def test_policies_that_take_long_to_read_are_refused(
    tmp_path: Path, content: str, words: str
) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(content)

    with pytest.raises(UsageError, match=words):
        read_policy(file)
