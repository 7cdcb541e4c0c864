"""What a command shows of a program's time: recorded work, and the lines of the rest."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from integration.conftest import Run

from proton_bench.analysis.accounting.host_time import (
    NOT_RECORDED,
    OTHER_THREADS,
    host_paths,
    run_time_of,
)
from proton_bench.formats.registry import read_profile
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.model.steps import HOST_WALL

SAMPLED = {"PROTON_BENCH_HOST_SAMPLES": "100"}
# A slow import, a slow set-up of pure Python, a loader that waits, and its times on stdout.
PARTS = """
    import json, time
    clock = time.perf_counter
    begin = clock()
    import slow_to_import
    imported = clock()

    def set_up():
        end = clock() + 1.0
        while clock() < end:
            sum(range(100))

    def load():
        for _ in range(50):
            time.sleep(0.02)

    set_up()
    ready = clock()
    load()
    loaded = clock()
    print(json.dumps([imported - begin, ready - imported, loaded - ready]))
"""


@dataclass(frozen=True)
class Parts:
    """The recorded program: what it printed, and its profile."""

    printed: str
    file: Path

    @property
    def profile(self) -> Profile:
        return read_profile(self.file)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    folder = tmp_path_factory.mktemp("parts")
    (folder / "slow_to_import.py").write_text("import time\ntime.sleep(1.0)\n")
    (folder / "x.py").write_text(textwrap.dedent(PARTS))
    done = subprocess.run(
        [sys.executable, "-m", "proton_bench", "-n", "x", "-b", "cpu", "x.py"],
        cwd=folder,
        env=os.environ | SAMPLED,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return Parts(done.stdout, folder / "x.proton")


def test_slow_parts_have_the_shares_of_the_run_that_they_took(parts: Parts) -> None:
    profile = parts.profile
    wall_ns = run_time_of(profile).wall_ns
    assert wall_ns is not None
    seconds = dict(
        zip(
            ("slow_to_import.py:2@<module>", "@set_up", "@load"),
            json.loads(parts.printed),
            strict=True,
        )
    )
    shares = {
        end: sum(
            path.wall_ns
            for path in host_paths(profile)
            if path.path and path.path[-1].endswith(end)
        )
        / wall_ns
        for end in seconds
    }

    assert shares == {
        end: pytest.approx(took / (wall_ns / 1e9), abs=0.05) for end, took in seconds.items()
    }


LONG = "".join(f"x{number} = [{number}]\n" for number in range(60_000))
FINDER = """
    import sys, time
    class Finder:
        def find_spec(self, name, path, target=None):
            time.sleep(0.5 if name == "other" else 0)
    sys.meta_path.insert(0, Finder())
    import other
"""


@pytest.mark.parametrize(
    ("script", "module"),
    [("import long\n", ("long", LONG)), (textwrap.dedent(FINDER), ("other", ""))],
    ids=["compiled", "searched"],
)
def test_time_inside_the_import_system_is_that_of_imports(
    tmp_path: Path, proton: Run, script: str, module: tuple[str, str]
) -> None:
    (tmp_path / f"{module[0]}.py").write_text(module[1])
    (tmp_path / "run.py").write_text(script)
    environment = SAMPLED | {"PYTHONDONTWRITEBYTECODE": "1"}

    proton("-n", "run", "-b", "cpu", "run.py", **environment)

    times = run_time_of(read_profile(tmp_path / "run.proton"))
    assert times.imports_ns is not None
    assert times.host_not_recorded_ns is not None
    assert times.imports_ns > 0.8 * times.host_not_recorded_ns


def test_rows_add_up_to_the_run(parts: Parts) -> None:
    profile = parts.profile
    times = run_time_of(profile)

    assert profile.inclusive(HOST_WALL)[0] == pytest.approx(times.wall_ns, rel=0.05)
    assert times.host_recorded_ns == 0
    assert times.before_ns is not None
    assert OTHER_THREADS not in profile.columns  # threads of the profiler are not the program's


def test_python_lines_stand_below_one_row(parts: Parts) -> None:
    profile = parts.profile

    assert [profile.name(row) for row in profile.children(0)] == [NOT_RECORDED]
    assert {profile.kind(row) for row in range(1, len(profile))} == {FrameKind.PYTHON}
    names = [profile.name(row) for row in range(2, len(profile))]
    assert [name for name in names if not re.fullmatch(r".+:\d+@.+", name)] == []


def test_a_view_shows_the_time_of_the_run(proton_here: Run, parts: Parts) -> None:
    shown = proton_here("view", "--json", parts.file)
    document = json.loads(shown.stdout)

    assert document["run_time"]["host_recorded_ns"] == 0
    assert document["run_time"]["wall_ns"] > 3e9


def test_time_of_scopes_stands_at_the_scopes(
    proton: Run, script: Callable[[str], str], tmp_path: Path
) -> None:
    program = """
        import time
        import proton_bench as proton

        def work():
            begin = time.perf_counter()
            while time.perf_counter() < begin + 0.5:
                sum(range(100))
            return time.perf_counter() - begin

        with proton.scope("step"):
            took = work()
        work()
        print(took)
    """
    done = proton("-n", "x", "-b", "cpu", script(program), **SAMPLED)
    profile = read_profile(tmp_path / "x.proton")
    (step,) = [row for row in profile.children(0) if profile.name(row) == "step"]

    assert done.returncode == 0
    assert profile.inclusive(HOST_WALL)[step] == pytest.approx(float(done.stdout) * 1e9, rel=0.15)


def test_the_library_takes_samples_only_when_it_is_asked(
    script: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = """
        import proton_bench as proton
        session = proton.start("x", backend="cpu")
        sum(range(3_000_000))  # many periods of the samples
        proton.finalize(session, "proton")
    """
    file = script(program)
    rows = {}
    for setting in (None, "200"):
        monkeypatch.delenv("PROTON_BENCH_HOST_SAMPLES", raising=False)
        if setting:
            monkeypatch.setenv("PROTON_BENCH_HOST_SAMPLES", setting)
        subprocess.run([sys.executable, file], cwd=tmp_path, check=True, timeout=120)
        rows[setting] = len(read_profile(tmp_path / "x.proton"))

    assert rows[None] == 1
    assert rows["200"] > 1


@pytest.mark.parametrize("rate", ["often", "1e9", "nan"])
def test_a_rate_that_cannot_be_is_refused(
    proton: Run, script: Callable[[str], str], rate: str
) -> None:
    done = proton("-n", "x", script("pass"), PROTON_BENCH_HOST_SAMPLES=rate)

    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_the_report_of_a_block_is_no_work_of_the_program(proton: Run, tmp_path: Path) -> None:
    (tmp_path / "blocks.py").write_text(
        "import proton_bench as proton\n"
        "with proton.profiled(backend='cpu'):\n"
        "    sum(range(10**6))\n"
        "sum(range(10**7))\n"
    )

    environment = {"PROTON_BENCH_HOST_SAMPLES": "1000", "PROTON_BENCH_QUIET": ""}
    done = proton("-n", "x", "-b", "cpu", "blocks.py", **environment)

    assert done.stderr.count("more: proton view") == 1  # of the run: the block has no file
    profile = read_profile(tmp_path / "x.proton")
    names = [profile.name(row) for row in range(len(profile))]
    assert any("blocks.py" in name for name in names)
    assert not [name for name in names if re.search("proton_bench/(analysis|report)/", name)]


def test_a_window_that_the_clock_opens_shows_the_main_thread_of_the_program(
    proton: Run, tmp_path: Path
) -> None:
    (tmp_path / "waits.py").write_text(
        textwrap.dedent("""
            import time
            from proton_bench import _native
            def busy():
                while not _native.is_recording():
                    pass
                end = time.monotonic() + 0.3
                while time.monotonic() < end:
                    pass
            busy()
        """)
    )

    proton("-n", "x", "-b", "cpu", "--after", "100ms", "waits.py", **SAMPLED)

    profile = read_profile(tmp_path / "x.proton")
    walls = profile.inclusive(HOST_WALL)
    busy = [row for row in range(len(profile)) if "@busy" in profile.name(row)]
    assert max(walls[row] for row in busy) > 0.5 * walls[0] > 0
