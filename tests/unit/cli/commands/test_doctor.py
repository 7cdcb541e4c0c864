from __future__ import annotations

import json
from pathlib import Path

import pytest

from proton_bench.cli.commands import doctor
from proton_bench.diagnosis.finding import Diagnosis, Finding, Section, Status
from proton_bench.errors import BackendUnavailableError

DIAGNOSIS = Diagnosis(
    (
        Section(
            "backends",
            (
                Finding("cpu", Status.OK, "here", provides=("cpu",)),
                Finding("acme", Status.ABSENT, "no driver", "buy one", provides=("acme",)),
            ),
        ),
    )
)


@pytest.fixture(autouse=True)
def examined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proton_bench.diagnosis.examination.examine", lambda: DIAGNOSIS)


def test_something_absent_alone_is_not_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    doctor.command()

    assert "no driver" in capsys.readouterr().out


def test_what_is_required_and_here_is_not_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    doctor.command(require=["cpu"])

    assert "here" in capsys.readouterr().out


def test_everything_missing_is_named_after_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BackendUnavailableError) as caught:
        doctor.command(require=["cpu", "acme", "acne"])

    assert caught.value.exit_code == 69
    assert str(caught.value) == (
        "--require: acme: no driver (buy one); "
        "--require: acne: nothing has this name (choose from: acme, cpu)"
    )
    assert "no driver" in capsys.readouterr().out


def test_json_is_printed_although_something_is_missing(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    with pytest.raises(BackendUnavailableError):
        doctor.command(require=["acme"], as_json=True)

    assert json.loads(capfdbinary.readouterr().out)["required"] == {"acme": False}


@pytest.mark.parametrize(
    ("written", "said"),
    [([Path("/e/bin/proton")], "wrote /e/bin/proton"), ([], "are ours already")],
)
def test_fixing_says_what_was_written(
    written: list[Path],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("proton_bench.diagnosis.scripts.fix_scripts", lambda place: written)

    doctor.command(fix=True)

    assert said in capsys.readouterr().err
