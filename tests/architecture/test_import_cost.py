"""What lives in the target's memory loads no heavy library; nothing here is timed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fakes.stored import put, stored_run

HEAVY = (
    "duckdb",
    "hatchet",
    "jinja2",
    "msgspec",
    "numpy",
    "pandas",
    "pydantic",
    "pynvml",
    "rich",
    "scipy",
    "torch",
    "triton",
    "typer",
)
REPORT = "import sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"


def loaded_after(statement: str) -> set[str]:
    """Return the top-level modules of a fresh interpreter that ran ``statement``."""
    done = subprocess.run(
        [sys.executable, "-c", f"{statement}\n{REPORT}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import proton_bench",
        "import proton_bench as p; p.start, p.scope, p.state, p.finalize, p.profile",
        "import proton_bench as p\nwith p.scope('x'): pass",
        "import proton_bench.recording.launcher.runner",
        "import proton_bench.recording.compat",
        "import proton_bench.plugin.backend",
        "import proton_bench.data, proton_bench.context, proton_bench.mode, proton_bench.flags",
        "import proton_bench.hooks, proton_bench.errors",
    ],
)
def test_the_capture_wing_loads_nothing_heavy(statement: str) -> None:
    loaded = loaded_after(statement)

    assert not loaded & {*HEAVY, "pluggy"}
    assert "proton_bench" in loaded


def test_plugin_manager_loads_pluggy_and_nothing_else_heavy() -> None:
    loaded = loaded_after(
        "from proton_bench.plugin.manager import get_plugin_manager; get_plugin_manager()"
    )

    assert "pluggy" in loaded
    assert not loaded & set(HEAVY)


def test_pytest_plugin_loads_nothing_heavy_before_it_is_asked() -> None:
    loaded = loaded_after("import pytest, proton_bench.pytest_plugin")

    # pytest itself brings pluggy, and pygments for colours.
    assert not loaded & set(HEAVY)


COMMAND = """
import sys
from pathlib import Path
from proton_bench.cli import main
try:
    code = main({words!r})
except SystemExit as end:
    code = end.code
names = [name.split('.') for name in sys.modules]
rooms = {{'.'.join(name[:2]) for name in names if name[0] == 'proton_bench'}}
print('loaded', code, *sorted({{name[0] for name in names}} | rooms), file=sys.stderr)
"""


def loaded_by(words: list[str]) -> tuple[str, set[str]]:
    """Return the exit code of a command, and the libraries and rooms that it loaded."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND.format(words=words)],
        capture_output=True,
        text=True,
        check=True,
    )
    _, code, *loaded = done.stderr.splitlines()[-1].split()
    return code, set(loaded)


@pytest.mark.parametrize(
    "words", [["view"], ["view", "--json"], ["view", "--list"], ["view", "-m", "why"], ["why"]]
)
def test_view_loads_what_reads_and_shows(tmp_path: Path, words: list[str]) -> None:
    file = put(tmp_path, stored_run()) / "0.proton"

    code, loaded = loaded_by([*words, str(file)])

    assert code == "0"
    assert not loaded & {"scipy", "pandas", "duckdb", "hatchet", "torch", "triton", "jinja2"}
    assert not loaded & {
        "proton_bench.gate",
        "proton_bench.diagnosis",
        "proton_bench.pytest_plugin",
    }


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--help"], "0"),
        (["view", "--help"], "0"),
        (["gate", "--help"], "0"),
        (["run", "--help"], "0"),
        (["view", "--no-such-option"], "2"),
        (["view", "no_such_file.proton"], "2"),
        (["no-such-command"], "2"),
    ],
)
def test_help_and_wrong_usage_load_no_library(words: list[str], expected: str) -> None:
    code, loaded = loaded_by(words)

    assert code == expected
    assert not loaded & {*HEAVY, "pluggy"} - {"typer"}
    assert words[0] == "gate" or "proton_bench.gate" not in loaded
