"""The module that each Python child imports at its start, looked at from outside."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import proton_bench.recording

SOURCE = (
    Path(proton_bench.recording.__file__).parent / "children" / "child_path" / "sitecustomize.py"
)


@pytest.fixture
def is_our_own(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], bool]:
    # Without options in the environment the module does nothing but define its names.
    monkeypatch.setattr(sys, "path", [])
    spec = importlib.util.spec_from_file_location("child_path_sitecustomize", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with contextlib.suppress(ImportError):  # no other module of that name
        spec.loader.exec_module(module)
    found: Callable[[list[str]], bool] = module._is_our_own
    return found


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("/venv/bin/proton -n x y.py", True),
        ("-u /venv/bin/proton-viewer x.hatchet", True),
        ("/site-packages/proton_bench/recording/launcher/bootstrap.py {}", True),
        ("-m proton_bench run x.py", True),
        ("-W error -Bm proton_bench.cli view", True),
        ("-m proton_bench_plugins", False),
        ("x.py proton", False),
        ("bootstrap.py", False),
        ("-m pytest proton_bench", False),
        ("-c pass proton", False),
        ("", False),
        ("-m", False),
    ],
)
def test_commands_of_ours_are_known(
    is_our_own: Callable[[list[str]], bool], words: str, expected: bool
) -> None:
    assert is_our_own(["python", *words.split()]) is expected


def test_a_script_imports_the_sitecustomize_that_it_would_without_us(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("")
    script = tmp_path / "x.py"
    script.write_text("import sitecustomize, sys\nprint(sitecustomize.__file__, *sys.meta_path)\n")

    def run(path: str) -> tuple[str, str]:
        orders = {"PYTHONPATH": path, "PROTON_BENCH_AUTOSTART": "{}"}
        done = subprocess.run(
            [sys.executable, str(script)],
            env={**os.environ, **orders},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        file, finders = done.stdout.split(maxsplit=1)
        return file, finders

    (without, _), (with_us, finders) = run(""), run(str(SOURCE.parent))

    assert with_us == without
    assert "ChildFinder" in finders


def test_little_is_imported_at_the_start_of_a_child() -> None:
    imports = [
        line for line in SOURCE.read_text().splitlines() if line.startswith(("import", "fr"))
    ]

    assert imports == [
        "from __future__ import annotations",
        "import os",
        "import sys",
        "from importlib.machinery import ModuleSpec, PathFinder",
    ]
