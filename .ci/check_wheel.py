"""Checks the installed package as a user would: python .ci/check_wheel.py [--analysis-only].

View, gate, recording, and that an import loads nothing heavy.

Runs where only the wheel and its dependencies are installed, from a folder without our sources.
``--analysis-only`` is for the pure wheel, which must refuse to record and say why.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

PROGRAM = """
import proton_bench as proton

with proton.scope("outer"):
    with proton.scope("inner", metrics={"items": 3}):
        pass
"""
# What analysis alone can read: a file that upstream's profiler could have written.
RECORDED = [
    {
        "frame": {"name": "ROOT", "type": "function"},
        "metrics": {"time (ns)": 0, "count": 0},
        "children": [
            {
                "frame": {"name": "inner", "type": "function"},
                "metrics": {"time (ns)": 3, "count": 1, "device_id": "0", "device_type": "CUDA"},
                "children": [],
            }
        ],
    },
    {"CUDA": {"0": {"arch": "90", "num_sms": 132}}},
]
EXIT_UNAVAILABLE = 69
IMPORT = """
import sys, time
before = time.perf_counter()
import proton_bench
took = time.perf_counter() - before
heavy = {"jinja2", "msgspec", "numpy", "pandas", "pluggy", "pytest", "rich", "scipy", "typer"}
assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
print(f"import proton_bench: {1000 * took:.0f} ms")
"""

COMPAT = """
import sys
assert "CompatFinder" in [type(finder).__name__ for finder in sys.meta_path]
"""


def call(folder: Path, *command: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command in ``folder``; another exit code than ``expect`` ends the check."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != expect:
        sys.exit(f"{command} ended with {done.returncode}, not {expect}:\n{done.stderr}")
    return done


def check_analysis(folder: Path) -> None:
    """View and convert a profile, through every way in."""
    (folder / "x.hatchet").write_text(json.dumps(RECORDED))
    scripts = Path(sysconfig.get_path("scripts"))
    for program in ([sys.executable, "-m", "proton_bench"], [str(scripts / "proton-bench")]):
        shown = json.loads(call(folder, *program, "view", "--json", "x.hatchet").stdout)
        assert [row["name"] for row in shown["rows"]][-1] == "inner", shown
    viewer = str(scripts / "proton-bench-viewer")
    assert "inner" in call(folder, viewer, "-m", "time/ns", "x.hatchet").stdout
    call(folder, *program, "report", "x.hatchet")
    assert "</html>" in (folder / "x.html").read_text()
    call(folder, *program, "export", "x.hatchet", "--to", "proton")
    assert (folder / "x.proton").stat().st_size > 0


def check_gate(folder: Path) -> None:
    """Pass what is the same and fail what launches more."""
    profile = json.loads(json.dumps(RECORDED))
    for name, count in (("base", 1), ("same", 1), ("more", 2)):
        profile[0]["children"][0]["metrics"]["count"] = count
        (folder / f"{name}.hatchet").write_text(json.dumps(profile))
    gate = [sys.executable, "-m", "proton_bench", "gate", "-t", "calls:0", "base.hatchet"]
    call(folder, *gate, "same.hatchet")
    call(folder, *gate, "more.hatchet", expect=1)


def check_recording(folder: Path) -> None:
    """Record a program and find its scopes in the profile."""
    (folder / "program.py").write_text(PROGRAM)
    run = [sys.executable, "-m", "proton_bench"]
    call(folder, *run, "doctor", "--require", "native", "--require", "cpu")
    call(folder, *run, "-o", "run.proton", "program.py")
    rows = json.loads(call(folder, *run, "view", "--json", "run.proton").stdout)["rows"]
    assert {"outer", "inner"} <= {row["name"] for row in rows}, rows
    call(folder, "env", "PROTON_BENCH_COMPAT=1", sys.executable, "-c", COMPAT)


def check_refusal(folder: Path) -> None:
    """Recording without the native module ends with 69 and the reason."""
    (folder / "program.py").write_text(PROGRAM)
    run = [sys.executable, "-m", "proton_bench"]
    for words in (["program.py"], ["doctor", "--require", "native"]):
        refused = call(folder, *run, *words, expect=EXIT_UNAVAILABLE)
        assert "native" in refused.stderr, refused.stderr
        assert "Traceback" not in refused.stderr, refused.stderr
    assert not list(folder.glob("proton.*"))


def main() -> None:
    """Check what this wheel promises."""
    recording = "--analysis-only" not in sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        check_analysis(folder)
        check_gate(folder)
        (check_recording if recording else check_refusal)(folder)
        print(call(folder, sys.executable, "-c", IMPORT).stdout, end="")
    print(f"the {'whole' if recording else 'analysis'} wheel works")


if __name__ == "__main__":
    main()
