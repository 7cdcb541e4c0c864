from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from proton_bench.errors import UsageError
from proton_bench.gate.policy import METRICS, Policy, policy_from_table, read_policy
from proton_bench.gate.verdict.result import EXIT_CODES, Reason, SuiteVerdict, Verdict

EVERYTHING = """
[tool.proton.gate]
threshold = "4%"
thresholds = ["2%", "fwd/**/softmax*@p95:10%", "calls:0"]
share = "1%"
runs = 6
inconclusive = "pass"
quarantine = ["**/flaky*"]
ignore-devices = true
"""


def written(folder: Path, text: str, name: str = "pyproject.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_every_key_of_a_pyproject(tmp_path: Path) -> None:
    policy = read_policy(written(tmp_path, EVERYTHING))

    assert [str(each) for each in policy.thresholds] == [
        "2%",
        "fwd/**/softmax*@p95:10%",
        "calls:0",
    ]
    assert (policy.threshold, policy.share, policy.runs) == (0.04, 0.01, 6)
    assert policy.inconclusive_passes
    assert policy.ignore_devices
    assert policy.quarantine == ("**/flaky*",)


def test_a_file_of_its_own_needs_no_table(tmp_path: Path) -> None:
    path = written(tmp_path, 'thresholds = "median:3%"\nshare = "0"\n', "gate.toml")

    policy = read_policy(path)

    assert str(policy.thresholds[0]) == "median:3%"
    assert policy.share == 0.0


def test_a_pyproject_of_others_has_the_default(tmp_path: Path) -> None:
    assert read_policy(written(tmp_path, '[project]\nname = "x"\n')) == Policy()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("thresholds = [,]\n", "line 1, column"),
        ("[tool.proton]\ngate = 3\n", "gate"),
        ("[tool.proton.gate]\ntreshold = 1\n", "'treshold'.*'threshold'"),
        (
            "[tool.proton.gate]\nthresholds = ['mean:5q']\n",
            "'mean:5q', column 7",
        ),
        ("[tool.proton.gate]\nthresholds = [3]\n", ": thresholds: "),
        ("[tool.proton.gate]\nthreshold = '120%'\n", ": threshold: '120%'"),
        ("[tool.proton.gate]\nthreshold = true\n", ": threshold: "),
        ("[tool.proton.gate]\nthreshold = 'x'\n", ": threshold: 'x'"),
        ("[tool.proton.gate]\nshare = nan\n", ": share: "),
        ("[tool.proton.gate]\nruns = 3\n", ": runs: .* 4 to 200"),
        ("[tool.proton.gate]\nruns = 4.5\n", ": runs: "),
        ("[tool.proton.gate]\nignore-devices = 'yes'\n", ": ignore-devices: 'yes'"),
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
    assert [str(each) for each in settled.thresholds[-2:]] == ["median:3%", "mean:1%"]
    with pytest.raises(UsageError, match="column 1"):
        policy.with_thresholds(["%"])


@pytest.mark.parametrize(
    ("written", "total"), [((), "3%"), (("5%",), "5%"), (("mean:7%",), "7%"), (("k@9%",), "3%")]
)
def test_a_threshold_of_all_launches_is_the_default_of_totals_too(
    written: tuple[str, ...], total: str
) -> None:
    settled = Policy().with_thresholds(written).with_marked(())

    texts = [str(each) for each in settled.thresholds if not each.selector]
    assert [text for text in texts if text.startswith("total")][-1] == f"total:{total}"
    assert {text.partition(":")[0] for text in texts} >= {"median", "total", "wall"}


@pytest.mark.parametrize("statistic", ["min", "p25"])
def test_a_statistic_that_leaves_launches_out_takes_the_place_of_all_defaults(
    statistic: str,
) -> None:
    settled = Policy().with_thresholds([f"{statistic}:8%"]).with_marked(())

    assert {each.metric: each.ratio for each in settled.thresholds} == {
        "total": pytest.approx(0.08),
        "peak": pytest.approx(0.08),
        statistic: pytest.approx(0.08),
    }
    assert settled.statistic == statistic


def test_it_also_takes_the_place_of_what_a_file_says_for_everything() -> None:
    policy = policy_from_table({"thresholds": ["5%", "k@2%", "calls:0"]}, "here")

    settled = policy.with_thresholds(["min:8%"]).with_marked(())

    of_all = {each.metric for each in settled.thresholds if not each.selector}
    assert of_all == {"total", "peak", "calls", "min"}
    assert "median" in {each.metric for each in settled.thresholds if each.selector == "k"}


@pytest.mark.parametrize(
    "written",
    [
        [],
        ["5%"],
        ["f@min:8%"],
        ["min:8%", "median:3%"],
        ["min:8%", "5%"],
        ["p95:8%"],
        ["tail:8%"],
        ["total:3%"],
        ["min:1us"],
    ],
)
def test_else_all_of_the_time_counts_in_totals(written: list[str]) -> None:
    settled = Policy().with_thresholds(written).with_marked(())

    assert settled.statistic == ""
    assert {"median", "total", "wall"} <= {each.metric for each in settled.thresholds}


@pytest.mark.parametrize("table", ["gates", "Gate", "gate_"])
def test_a_misspelt_table_does_not_fall_back_to_defaults(tmp_path: Path, table: str) -> None:
    file = written(tmp_path, f'[tool.proton.{table}]\nthreshold = "1%"\n')

    with pytest.raises(UsageError, match=r"\[tool.proton.gate\]"):
        read_policy(file)


def test_other_tables_of_the_project_are_accepted(tmp_path: Path) -> None:
    assert read_policy(written(tmp_path, "[tool.proton.colours]\na = 1\n")) == Policy()


def test_keys_outside_of_the_table_are_not_dropped(tmp_path: Path) -> None:
    file = written(tmp_path, 'runs = 8\n[tool.proton.gate]\nthreshold = "8%"\n', "gate.toml")

    with pytest.raises(UsageError, match="runs"):
        read_policy(file)


@pytest.mark.parametrize("value", ["", [""], ["a", "  "]])
def test_an_empty_glob_does_not_quarantine_everything(value: Any) -> None:
    with pytest.raises(UsageError, match="quarantine"):
        policy_from_table({"quarantine": value}, "x")


@pytest.mark.parametrize("value", [0, 0.0, "0", "0%", "0.0 %"])
def test_a_share_may_be_nothing(value: Any) -> None:
    assert policy_from_table({"share": value}, "x").share == 0.0


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


PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "gate_policy.md").read_text("utf-8")


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_stands_in_the_docs(reason: Reason) -> None:
    assert f"`{reason.value}`" in PAGE.split("## Reasons")[1]


def test_every_key_stands_in_the_docs_and_means_something() -> None:
    table = PAGE.split("| key | value | default |")[1].split("\n\n")[0]
    keys = [line.split("`")[1] for line in table.splitlines() if line.startswith("| `")]

    for key in keys:
        with pytest.raises(ValueError, match=f": {key}: "):
            policy_from_table({key: object()}, "x")
    with pytest.raises(ValueError, match=f"keys are {', '.join(sorted(keys))}$"):
        policy_from_table({"none": 1}, "x")


def test_exit_codes_and_metrics_stand_in_the_docs() -> None:
    for verdict, code in EXIT_CODES.items():
        assert f"| `{verdict.value}` | {code}" in PAGE
    assert " ".join(METRICS) in PAGE
    assert set(EXIT_CODES) == set(SuiteVerdict)


def test_the_defaults_are_those_of_the_docs() -> None:
    policy = Policy()

    assert (policy.threshold, policy.share, policy.runs) == (0.03, 0.005, 4)


def test_the_gate_has_few_words() -> None:
    assert len(Verdict) <= 6
    assert len(Reason) <= 15
