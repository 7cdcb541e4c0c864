from __future__ import annotations

from pathlib import Path

import pytest

from proton_bench.cli.options import chosen_policy
from proton_bench.errors import UsageError
from proton_bench.gate.policy import Policy, PolicyWords


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_any_word_the_defaults_hold() -> None:
    assert chosen_policy(PolicyWords(None)) == Policy()


def test_the_project_s_policy_holds_in_folders_below(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "pyproject.toml").write_text('[tool.proton.gate]\nthreshold = "7%"\n')
    (folder / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(folder / "deep" / "er")

    policy = chosen_policy(PolicyWords(None))

    assert policy.threshold == 0.07


def test_the_command_line_wins_over_the_file(folder: Path) -> None:
    file = folder / "gate.toml"
    file.write_text(
        'thresholds = ["median:9%"]\nshare = "2%"\nquarantine = ["a"]\ninconclusive = "pass"\n'
    )

    policy = chosen_policy(
        PolicyWords(
            file,
            thresholds=["k@median:1%"],
            settings=["share=1%", "runs=6", "quarantine=b", "inconclusive=fail"],
        )
    )

    assert [str(each) for each in policy.thresholds] == ["median:9%"]
    assert [str(each) for each in policy.overriding] == ["k@median:1%"]
    assert (policy.share, policy.runs) == (0.01, 6)
    assert policy.quarantine == ("b",)
    assert not policy.inconclusive_passes


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (PolicyWords(None, settings=["share"]), "--set 'share' is not KEY=VALUE"),
        (PolicyWords(None, settings=["=1"]), "is not KEY=VALUE"),
        (PolicyWords(None, settings=["shares=1%"]), "command line: unknown key 'shares'"),
        (PolicyWords(None, settings=["runs=many"]), "command line: runs: 'many' is not a number"),
        (PolicyWords(None, thresholds=["median:"]), "column 8"),
        (PolicyWords(Path("gone.toml")), "policy 'gone.toml' cannot be read"),
    ],
)
def test_what_means_nothing_is_refused(words: PolicyWords, message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("'", ".")):
        chosen_policy(words)
