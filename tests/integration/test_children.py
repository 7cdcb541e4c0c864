"""Processes that a recorded program starts, and how programs are run."""

from __future__ import annotations

import errno
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from integration.outputs import written
from integration.running import ended, source, started, wait_for_line

from proton_bench.formats.registry import read_profile

pytest.importorskip("proton_bench._native")

Run = Callable[..., "subprocess.CompletedProcess[str]"]
WORK = """
    import multiprocessing, os, subprocess, sys

    def work(name):
        import proton_bench as proton
        with proton.scope(name):
            pass

    def python(code):
        return [sys.executable, "-c", code]

    SCOPE = "import proton_bench as proton\\nwith proton.scope('child'): pass"
"""


def write_script(folder: Path, *parts: str, name: str = "x.py") -> None:
    (folder / name).write_text(source(*parts))


def profiles(folder: Path) -> dict[str, set[str]]:
    """Return the frames of each ``.proton`` file of a child."""
    found = {}
    for path in folder.glob("n.*.proton"):
        profile = read_profile(path)
        found[path.name] = {profile.name(row) for row in range(len(profile))} - {"ROOT"}
    return found


def child_files(folder: Path) -> set[str]:
    return {name for name in written(folder) if name.startswith("n.") and name.count(".") > 1}


@pytest.mark.parametrize(
    ("method", "imported"), [("spawn", "by the script"), ("forkserver", "in the worker")]
)
def test_workers_of_multiprocessing_write_profiles_of_their_own(
    tmp_path: Path, proton: Run, method: str, imported: str
) -> None:
    write_script(
        tmp_path,
        WORK,
        "import proton_bench" if imported == "by the script" else "",
        f"""
        if __name__ == "__main__":
            context = multiprocessing.get_context({method!r})
            workers = [context.Process(target=work, args=(name,)) for name in "ab"]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            print([worker.exitcode for worker in workers])
        """,
    )

    done = proton("-n", "n", "x.py", PROTON_BENCH_QUIET="")

    assert (done.returncode, done.stdout) == (0, "[0, 0]\n"), done.stderr
    assert sorted(map(sorted, profiles(tmp_path).values())) == [["a"], ["b"]]
    assert "proton: children wrote n.pid" in done.stderr


def test_workers_of_a_pool_that_terminates_them_leave_what_they_did(
    tmp_path: Path, proton: Run
) -> None:
    write_script(
        tmp_path,
        WORK,
        "import proton_bench",
        """
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                pool.map(work, ["a"])
        """,
    )

    done = proton("-n", "n", "x.py", PROTON_BENCH_QUIET="")

    assert done.returncode == 0, done.stderr
    assert [*profiles(tmp_path).values()] == [{"a"}]
    assert "n.pid" in done.stderr


@pytest.mark.parametrize(
    "start",
    [
        "subprocess.run(python(SCOPE), check=True)",
        "os.waitpid(os.posix_spawn(sys.executable, python(SCOPE), os.environ), 0)",
        "subprocess.run(['sh', '-c', f'\"{sys.executable}\" -c \"{SCOPE}\"'], check=True)",
    ],
    ids=["subprocess", "posix_spawn", "through a shell"],
)
def test_a_python_child_writes_a_profile_of_its_own(
    tmp_path: Path, proton: Run, start: str
) -> None:
    write_script(tmp_path, WORK, start)

    done = proton("-n", "n", "x.py")

    assert done.returncode == 0, done.stderr
    assert [*profiles(tmp_path).values()] == [{"child"}]


def test_a_forked_child_starts_disabled_and_leaves_the_profile_alone(
    tmp_path: Path, proton: Run
) -> None:
    write_script(
        tmp_path,
        WORK,
        """
        work("parent")
        child = os.fork()
        if child == 0:
            from proton_bench import _native
            work("forked")
            print(_native.active_session_count(), flush=True)
            sys.exit(3)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        worker = multiprocessing.get_context("fork").Process(target=work, args=("forked",))
        worker.start()
        worker.join()
        print(worker.exitcode)
        """,
    )

    done = proton("-n", "n", "x.py")

    assert (done.returncode, done.stdout) == (0, "0\n3\n0\n"), done.stderr
    assert written(tmp_path) == {"n.proton", "n.hatchet"}
    profile = read_profile(tmp_path / "n.proton")
    assert [profile.name(row) for row in range(len(profile))] == ["ROOT", "parent"]


def test_a_signal_to_a_forked_child_means_what_it_means_without_us(
    tmp_path: Path, proton: Run
) -> None:
    write_script(
        tmp_path,
        WORK,
        """
        import signal
        work("parent")
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writer, b"!")
            signal.pause()
        os.read(reader, 1)
        os.kill(child, signal.SIGTERM)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
    )

    done = proton("-n", "n", "x.py")

    assert (done.returncode, done.stdout) == (0, "-15\n"), done.stderr
    assert written(tmp_path) == {"n.proton", "n.hatchet"}


def test_forking_while_threads_record_harms_neither(tmp_path: Path, proton: Run) -> None:
    write_script(
        tmp_path,
        WORK,
        """
        import threading
        import proton_bench as proton
        from proton_bench import _native
        done = threading.Event()

        def record():
            while not done.is_set():
                with proton.scope("busy", metrics={"items": 1}):
                    _native.drain()

        threads = [threading.Thread(target=record) for _ in range(4)]
        for thread in threads:
            thread.start()
        codes = []
        for _ in range(50):
            child = os.fork()
            if child == 0:
                _native.drain()
                _native.live_context_count()
                os._exit(0)
            codes.append(os.waitpid(child, 0)[1])
        done.set()
        for thread in threads:
            thread.join()
        print(set(codes))
        """,
    )

    done = proton("-n", "n", "x.py", PROTON_BENCH_PARTIAL_INTERVAL_S="0.001")

    assert (done.returncode, done.stdout) == (0, "{0}\n"), done.stderr


def test_a_worker_that_is_terminated_leaves_a_partial_file_and_dies_by_the_signal(
    tmp_path: Path, proton: Run
) -> None:
    write_script(
        tmp_path,
        WORK,
        """
        import signal
        from pathlib import Path

        def hang(ready):
            work("before")
            while not any(Path().glob("n.pid*.partial.proton")):
                pass
            ready.set()
            signal.pause()

        if __name__ == "__main__":
            context = multiprocessing.get_context("spawn")
            ready = context.Event()
            worker = context.Process(target=hang, args=(ready,))
            worker.start()
            ready.wait()
            worker.terminate()
            worker.join()
            print(worker.exitcode)
        """,
    )

    done = proton("-n", "n", "x.py", PROTON_BENCH_PARTIAL_INTERVAL_S="0.01")

    assert (done.returncode, done.stdout) == (0, "-15\n"), done.stderr
    (left,) = tmp_path.glob("n.pid*.partial.proton")
    assert "before" in read_profile(left).strings


@pytest.mark.parametrize(
    "code",
    ["import json", "import proton_bench", "import proton_bench as p; p.start('own')"],
    ids=["not ours", "nothing recorded", "start is ignored"],
)
def test_a_child_that_records_nothing_writes_nothing(
    tmp_path: Path, proton: Run, code: str
) -> None:
    write_script(tmp_path, WORK, f"subprocess.run(python({code!r}), check=True)")

    done = proton("-n", "n", "x.py")

    assert done.returncode == 0, done.stderr
    assert written(tmp_path) == {"n.proton", "n.hatchet"}


def test_a_child_that_imports_nothing_of_ours_loads_nothing_of_ours(
    tmp_path: Path, proton: Run
) -> None:
    ours = "import sys; print(*(m for m in sys.modules if m.startswith(('proton', 'importlib.u'))))"
    write_script(tmp_path, WORK, f"subprocess.run(python({ours!r}), check=True)")

    done = proton("-n", "n", "x.py")

    assert done.returncode == 0, done.stderr
    assert "proton_bench" not in done.stdout


def test_children_can_be_left_alone(tmp_path: Path, proton: Run) -> None:
    write_script(
        tmp_path,
        WORK,
        """
        print(sorted(name for name in os.environ if name.startswith("PROTON_BENCH_")))
        print(os.environ.get("PYTHONPATH"))
        subprocess.run(python(SCOPE), check=True)
        """,
    )

    done = proton("run", "--no-children", "-n", "n", "x.py", PYTHONPATH="/one:/two")

    ours = sorted({"PROTON_BENCH_QUIET", *filter(re.compile("PROTON_BENCH_").match, os.environ)})
    assert (done.returncode, done.stdout) == (0, f"{ours}\n/one:/two\n"), done.stderr
    assert written(tmp_path) == {"n.proton", "n.hatchet"}


@pytest.mark.parametrize(("option", "name"), [("--compat", "proton_bench"), ("--no-compat", "")])
def test_upstreams_name_means_the_same_in_a_child(
    tmp_path: Path, proton: Run, option: str, name: str
) -> None:
    pytest.importorskip("triton")
    code = "import triton, sys; import triton.profiler as p; print(p.__name__)"
    write_script(tmp_path, WORK, f"subprocess.run(python({code!r}))")

    done = proton("run", option, "-n", "n", "x.py")

    assert done.returncode == 0, done.stderr
    assert (done.stdout == "proton_bench\n") == (name == "proton_bench")


def test_the_next_sitecustomize_is_imported_too(tmp_path: Path, proton: Run) -> None:
    (tmp_path / "site").mkdir()
    write_script(tmp_path / "site", "import sys; sys.mine = __file__", name="sitecustomize.py")
    code = "import sys, sitecustomize; print(sys.mine == sitecustomize.__file__, sys.path[1:2])"
    write_script(tmp_path, WORK, f"subprocess.run(python({code!r}), check=True)")

    done = proton("-n", "n", "x.py", PYTHONPATH=str(tmp_path / "site"))

    assert (done.returncode, done.stdout) == (0, f"True ['{tmp_path / 'site'}']\n"), done.stderr


def test_a_python_without_proton_bench_is_reported_and_goes_on(tmp_path: Path, proton: Run) -> None:
    (tmp_path / "torch.py").write_text("found = 'a torch of its own'")
    code = "import sys; sys.path.insert(0, ''); sys.modules['proton_bench.recording'] = None; " + (
        "import torch; print(torch.found)"
    )
    write_script(tmp_path, WORK, f"subprocess.run(python({code!r}), check=True)")

    done = proton("-n", "n", "x.py")

    assert done.returncode == 0, done.stderr
    assert done.stdout == "a torch of its own\n"
    assert "proton_bench is not installed" in done.stderr


def test_ranks_are_distinguished_and_their_children_too(tmp_path: Path, proton: Run) -> None:
    write_script(
        tmp_path,
        WORK,
        """
        def run(rank):
            environment = {**os.environ, "RANK": rank, "WORLD_SIZE": "2"}
            code = SCOPE + f"\\nimport subprocess, sys\\nsubprocess.run({python(SCOPE)!r})"
            subprocess.run(python(code), env=environment, check=True)

        run("0")
        run("1")
        """,
    )

    done = proton("-n", "n.proton", "x.py")

    assert done.returncode == 0, done.stderr
    names = sorted(child_files(tmp_path))
    assert [name for name in names if "pid" not in name] == ["n.rank0.proton", "n.rank1.proton"]
    assert sum("rank0.pid" in name for name in names) == 1
    assert sum("rank1.pid" in name for name in names) == 1


def test_two_attempts_of_one_rank_do_not_overwrite_each_other(tmp_path: Path, proton: Run) -> None:
    write_script(
        tmp_path,
        WORK,
        """
        for _ in range(2):
            environment = {**os.environ, "RANK": "0", "WORLD_SIZE": "2"}
            subprocess.run(python(SCOPE), env=environment, check=True)
        """,
    )

    done = proton("-n", "n.proton", "x.py")

    assert done.returncode == 0, done.stderr
    assert len(child_files(tmp_path)) == 2


def test_a_name_with_a_pid_needs_no_second_one(tmp_path: Path, proton: Run) -> None:
    write_script(tmp_path, WORK, "subprocess.run(python(SCOPE), check=True)")

    done = proton("-n", "n.at{pid}.proton", "x.py")

    assert done.returncode == 0, done.stderr
    assert len(child_files(tmp_path)) == 2
    assert not any("pid" in name for name in child_files(tmp_path))


# -- programs ------------------------------------------------------------------------------------
@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    for name in "ab":
        write_script(
            tmp_path, f"import proton_bench as p\nwith p.scope('{name}'): pass", name=f"{name}.py"
        )
    return tmp_path


def test_a_program_is_run_and_the_python_in_it_recorded(scripts: Path, proton: Run) -> None:
    python = shlex.quote(sys.executable)
    line = f"{python} a.py; {python} b.py; echo $0 $1; exit 5"

    done = proton("-n", "n", "sh", "-c", line, "zero", "-n", PROTON_BENCH_QUIET="")

    assert (done.returncode, done.stdout) == (5, "zero -n\n"), done.stderr
    assert sorted(map(sorted, profiles(scripts).values())) == [["a"], ["b"]]
    assert "proton: children wrote n.pid" in done.stderr


def test_a_program_without_python_says_that_there_is_no_profile(
    tmp_path: Path, proton: Run
) -> None:
    done = proton("-n", "n", "sh", "-c", "exit 0", PROTON_BENCH_QUIET="")

    assert done.returncode == 0
    assert "proton: warning: no profile was written" in done.stderr
    assert written(tmp_path) == set()


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["-b", "nothing", "sh", "-c", "echo ran"], 2, "nothing"),
        (["-n", "none/n", "sh", "-c", "echo ran"], 74, "none/n"),
        (["-n", "-", "sh", "-c", "echo ran"], 2, "stdout"),
        (["--no-children", "sh", "-c", "echo ran"], 2, "--no-children"),
    ],
)
def test_what_would_keep_every_child_from_being_recorded_is_found_before_the_start(
    tmp_path: Path, proton: Run, words: list[str], code: int, text: str
) -> None:
    done = proton(*words)

    assert (done.returncode, done.stdout) == (code, "")
    assert text in done.stderr


def test_a_file_without_an_interpreter_is_a_clear_error(tmp_path: Path, proton: Run) -> None:
    (tmp_path / "tool").write_bytes(b"\x7fELF but not really")
    (tmp_path / "tool").chmod(0o755)

    done = proton("-n", "n", "./tool")

    assert done.returncode == 2
    assert os.strerror(errno.ENOEXEC) in done.stderr
    assert "Traceback" not in done.stderr


def test_a_signal_that_kills_the_program_is_its_exit_code(tmp_path: Path, proton: Run) -> None:
    assert proton("-n", "n", "sh", "-c", "kill -KILL $$").returncode == 137


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGUSR1])
def test_signals_are_passed_on_to_the_program(tmp_path: Path, number: signal.Signals) -> None:
    program = source(
        f"""
        import os, signal, sys
        def stop(number, frame):
            os.write(1, b"caught\\n")
            sys.exit(9)
        signal.signal({number.value}, stop)
        os.write(1, b"ready\\n")
        while True:
            signal.pause()
        """
    )
    words = ["-m", "proton_bench", "-n", "n", "env", sys.executable, "-I", "-c", program]

    with started(words, tmp_path) as running:
        wait_for_line(running)
        running.send_signal(number)
        code, out, err = ended(running)

    assert (code, out) == (9, "caught\n"), err


def test_a_signal_to_the_program_reaches_its_python_and_writes_its_profile(
    tmp_path: Path,
) -> None:
    write_script(
        tmp_path,
        """
        import os, signal, sys
        import proton_bench as proton
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        with proton.scope("a"):
            pass
        os.write(1, b"ready\\n")
        signal.pause()
        """,
    )
    line = f"exec {shlex.quote(sys.executable)} x.py"
    words = ["-m", "proton_bench", "-n", "n", "sh", "-c", line]

    with started(words, tmp_path) as running:
        wait_for_line(running)
        running.terminate()
        code, _, err = ended(running)

    assert code == 143, err
    assert [*profiles(tmp_path).values()] == [{"a"}]
