"""What lives in the target's memory loads no heavy library; nothing here is timed."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
