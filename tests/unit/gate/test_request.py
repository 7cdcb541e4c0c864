"""A request is found again as it was asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proton_bench.errors import ProfileFormatError
from proton_bench.gate.ab import Request, resume_ab
from proton_bench.gate.policy import Policy
from proton_bench.gate.processes import Command, Revision
from proton_bench.gate.progress import open_progress
from proton_bench.gate.runs import KeptRuns
from proton_bench.recording.launcher.run_options import RunOptions
from proton_bench.recording.launcher.target import TargetKind


def command(target: str) -> Command:
    options = RunOptions(kind=TargetKind.SCRIPT, target=target, name="", formats=(), folder="/x")
    return Command(options, ("a b", "--c"), ("-O",))


def test_a_request_survives_json() -> None:
    policy = Policy(quarantine=("a/**",), runs=6)
    policy = policy.with_thresholds(["fwd/**@p95:10%&1us", "calls:0"])
    plain = Request(command("new.py"))
    full = Request(
        command("new.py"), command("base.py"), Revision("/x", "main", "0" * 40), "make", 5, policy
    )

    for request in (plain, full):
        assert Request.from_document(json.loads(json.dumps(request.to_document()))) == request


def test_each_run_has_files_of_its_own_and_says_nothing() -> None:
    line = command("new.py").line(
        "/f/{odd}", first_folders=("/tree",), interpreter="/env/bin/python"
    )
    options = RunOptions.from_json(line[-3])

    assert line[0] == "/env/bin/python"
    assert line[1] == "-O"
    assert line[-2:] == ["a b", "--c"]
    assert options.name == "/f/{odd}"
    assert options.template == "/f/{{odd}}"
    assert options.modules_file == "/f/{odd}.modules.json"
    assert (options.formats, options.first_folders) == (("proton",), ("/tree",))
    assert options.quiet
    assert options.strict
    assert command("new.py").text == "new.py 'a b' --c"


def test_a_manifest_without_what_was_asked_is_damaged(tmp_path: Path) -> None:
    KeptRuns.create(tmp_path / "kept", {"doing": "ab"})

    with pytest.raises(ProfileFormatError, match="KeyError"):
        resume_ab(tmp_path / "kept", open_progress("ab"))
