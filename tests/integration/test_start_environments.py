"""Programs in odd environments print and return the same with and without the profiler."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from integration.outputs import written

pytest.importorskip("proton_bench._native")

SAYS = "import sys; print('said', sys.argv)\n"
FLAGS = "import sys; print(sys.flags, sys.warnoptions, sys._xoptions, sys.path[0])\n"
LATE = "import os, sys; print(sys.path[0], __file__, sys.argv); os.chdir('/'); import late\n"
FILES = {
    "says.py": SAYS,
    "flags.py": FLAGS,
    "\xfc.py": "import sys; print(ascii(sys.argv), sys.stdout.encoding)\n",
    "streams.py": "import sys; sys.exit(sum(2 for s in (sys.stdin, sys.stdout, sys.stderr) if s))",
    "names.py": "import sys; print(sorted(globals()), __builtins__, sys.orig_argv[1:])\n",
    "first.py": "not ( Python\nprint('x')\n1 / 0\n",
    "app/__main__.py": LATE,
    "app/late.py": "print('late')\n",
    "fails/sitecustomize.py": "1 / 0\n",
    "warns.py": "import warnings; warnings.warn('careful')\n",
}
# Environment: what a shell does first, and the interpreter's words. "-n" is where the profile goes.
CASES = {
    "stdin closed": ("", "streams.py <&-"),
    "stdout closed": ("", "streams.py >&-"),
    "stderr closed": ("", "streams.py 2>&-"),
    "all closed": ("", "streams.py <&- >&- 2>&-"),
    "folder removed": ("mkdir gone; cd gone; rmdir ../gone", "$HERE/says.py"),
    "folder removed, no name": ("NAME=; mkdir gone; cd gone; rmdir ../gone", "$HERE/says.py"),
    "folder removed, code": ("NAME=; mkdir gone; cd gone; rmdir ../gone", "-c 'print(1)'"),
    "folder not to be written": ("mkdir sub; cd sub; chmod 555 .", "../says.py"),
    "zipped application": ("$PYTHON -m zipapp app -o app.pyz", "app.pyz a"),
    "zipped application by another path": ("$PYTHON -m zipapp app -o app.pyz", "./app.pyz a"),
    "folder as application": ("", "app a"),
    "script by another path": ("cd app", "../says.py a"),
    "names of a script": ("", "names.py a"),
    "names of a module": ("", "-B -m names a"),
    "names of code": ("", "-c 'print(sorted(globals()), __builtins__, __loader__)' a"),
    "script from stdin": ("", "- a < names.py"),
    "script from stdin without a word": ("", "< names.py"),
    "first line skipped": ("", "-x first.py"),
    "version": ("", "--version"),
    "version, in short": ("", "-BVV"),
    "home not to be written": ("mkdir home; chmod 555 home; export HOME=$PWD/home", "says.py"),
    "no home": ("unset HOME", "says.py"),
    "no folder for temporary files": ("export TMPDIR=/no-such", "says.py"),
    "safe path": ("export PYTHONSAFEPATH=1", "flags.py"),
    "warnings are errors": ("export PYTHONWARNINGS=error", "warns.py"),
    "isolated": ("", "-I flags.py"),
    "environment ignored": ("export PYTHONWARNINGS=error", "-E flags.py"),
    "optimised": ("", "-OO flags.py"),
    "developer": ("", "-X dev -W error flags.py"),
    "C locale": ("export LC_ALL=C", "\xfc.py '\xfc'"),
    "no UTF-8 at all": (
        "export LC_ALL=C PYTHONCOERCECLOCALE=0 PYTHONUTF8=0",
        "\xfc.py '\xfc'",
    ),
    "few files": ("ulimit -n 24", "says.py"),
    "nothing may be read": ("umask 777", "says.py"),
    "broken sitecustomize": ("export PYTHONPATH=$PWD/fails; exec 2> /dev/null", "says.py"),
    "no PATH": ("PATH=", "says.py"),
    "full output": ("", "says.py > /dev/full"),
    "reader gone": ("", "-c \"[print('x' * 99) for i in range(9999)]\" | true; echo $PIPESTATUS"),
}


def outcome(folder: Path, ready: str, line: str) -> tuple[int, str, str]:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    done = subprocess.run(
        ["bash", "-c", f"HERE=$PWD; PYTHON={shlex.quote(sys.executable)}\n{ready}\n{line}"],
        cwd=folder,
        env={**os.environ, "PROTON_BENCH_QUIET": "1", "TMPDIR": str(folder.parent)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=300,
    )
    return (
        done.returncode,
        *(text.decode().replace(str(folder), "D") for text in (done.stdout, done.stderr)),
    )


@pytest.mark.nightly(keep=8)
@pytest.mark.parametrize("case", CASES)
def test_a_program_does_what_it_does_without_us(tmp_path: Path, case: str) -> None:
    ready, words = CASES[case]
    bare, ours = tmp_path / "bare", tmp_path / "ours"

    expected = outcome(bare, ready, f"$PYTHON {words}")
    found = outcome(
        ours, f"NAME='-n '$HERE/out\n{ready}", f"$PYTHON -m proton_bench $NAME python {words}"
    )

    assert found == expected
    if "version" not in case and "NAME=" not in ready:
        assert {"out.proton", "out.hatchet"} <= written(ours)


def test_a_profile_without_a_folder_goes_where_stderr_says(tmp_path: Path) -> None:
    ready = "mkdir gone; cd gone; rmdir ../gone; unset PROTON_BENCH_QUIET"

    code, out, err = outcome(tmp_path / "x", ready, "$PYTHON -m proton_bench $HERE/says.py")

    assert (code, out) == (0, "said ['D/says.py']\n"), err
    (folder,) = tmp_path.glob("proton-*")
    assert f"the current folder was removed: the profile goes to {folder}" in err
    assert (folder / "says.proton").exists()
