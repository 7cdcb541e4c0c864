"""A backend of a third party and broken plugins, installed as packages on the path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("proton_bench._native")

PACKAGES = Path(__file__).parents[1] / "data" / "plugin_packages"
SCRIPT = """
import acme_proton
import proton_bench as proton

with proton.scope("step"):
    acme_proton.launch()
    acme_proton.launch()
"""
CONTRACT = """
import itertools, sys
import acme_proton
from proton_bench.recording.session.session import SessionOptions, open_session
from proton_bench.plugin.contract import assert_backend_contract

numbers = itertools.count()
assert_backend_contract(
    acme_proton.BACKEND,
    modes=("", "slow:factor=2"),
    open_session=lambda: open_session(
        SessionOptions(name=f"contract{next(numbers)}", backend="acme")
    ),
    workload=acme_proton.launch,
)
print("kept")
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def python(tmp_path: Path) -> Run:
    """Run Python in the test's folder with the named plugin packages installed."""

    def run(
        *words: str, packages: tuple[str, ...] = ("acme",), **environment: str
    ) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join(str(PACKAGES / package) for package in packages)
        return subprocess.run(
            [sys.executable, "-B", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path, **environment},
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run


def listed(python: Run, *packages: str) -> dict[str, dict[str, str]]:
    """Return the findings of `proton doctor` about backends and plugins, by name."""
    done = python("-m", "proton_bench", "doctor", "--json", packages=packages)
    sections = json.loads(done.stdout)["sections"]
    (found,) = [section["findings"] for section in sections if section["name"] == "backends"]
    return {each["name"]: each for each in found}


def test_a_third_party_backend_is_listed(python: Run) -> None:
    acme = listed(python, "acme")["acme"]

    assert (acme["status"], acme["value"]) == ("ok", "ACME driver 4.2")


def test_a_third_party_backend_records(python: Run, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(SCRIPT)

    done = python(
        *("-m", "proton_bench", "-n", "x", "-b", "acme", "x.py"),
        ACME_LOG=str(tmp_path / "log"),
        ACME_NOTICE="1",
    )

    assert done.returncode == 0, done.stderr
    assert "proton: the ACME accelerator is pretended\n" in done.stderr
    root, devices = json.loads((tmp_path / "x.hatchet").read_text())
    (step,) = root["children"]
    (kernel,) = step["children"]
    assert step["frame"]["name"] == "step"
    assert kernel["frame"]["name"] == "acme_kernel"
    assert (kernel["metrics"]["time (ns)"], kernel["metrics"]["count"]) == (2000, 2)
    assert devices["CUDA"]["7"]["arch"] == "90"
    assert (tmp_path / "log").read_text() == "0 2\n"


def test_no_interpret_leaves_out_the_preparation(python: Run, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(SCRIPT)

    done = python(*("-m", "proton_bench", "--no-interpret", "-b", "acme", "x.py"), ACME_NOTICE="1")

    assert done.returncode == 0, done.stderr
    assert "pretended" not in done.stderr


def test_a_third_party_backend_keeps_the_contract(python: Run, tmp_path: Path) -> None:
    done = python("-c", CONTRACT)

    assert done.stdout == "kept\n", done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_unavailable_backend_says_why(python: Run, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(SCRIPT)

    done = python("-m", "proton_bench", "-b", "acme", "x.py", ACME_MISSING="1")

    assert done.returncode == 69
    assert "'acme' cannot run here: no ACME driver was found: install it" in done.stderr
    assert "Traceback" not in done.stderr


def test_plugins_add_commands_but_take_none_over(python: Run) -> None:
    greeted = python("-m", "proton_bench", "acme-hello", "you")
    help_text = python("-m", "proton_bench", "--help")

    assert greeted.stdout == "hello you\n", greeted.stderr
    assert "acme-hello" in help_text.stdout
    assert "a plugin's command 'view' exists already" in help_text.stderr
    assert "a plugin's command 'acme-odd' cannot be built" in help_text.stderr
    assert help_text.returncode == 0


def test_broken_plugins_are_named_and_take_nothing_down(python: Run, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(SCRIPT)
    packages = ("broken", "acme")

    ran = python("-m", "proton_bench", "-b", "acme", "x.py", packages=packages)
    problems = listed(python, *packages)

    assert ran.returncode == 0, ran.stderr
    for name in ("broken-import", "broken-hook", "broken-result"):
        assert ran.stderr.count(f"plugin '{name}' is broken") == 1
    assert "RuntimeError: the licence server" in problems["broken-import"]["value"]
    assert "unknown hook 'proton_backend'" in problems["broken-hook"]["value"]
    assert "not a Backend" in problems["broken-result"]["value"]
    assert problems["acme"]["status"] == "ok"
