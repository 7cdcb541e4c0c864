"""What `proton run` runs, records and writes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from integration.outputs import SCOPED, frame_names, stderr_of_target, written

pytest.importorskip("proton_bench._native")

Run = Callable[..., "subprocess.CompletedProcess[str]"]
HEAVY = ("typer", "rich", "click", "pandas", "msgspec", "numpy", "hatchet", "torch", "triton")


def test_a_script_writes_both_files(
    proton: Run, script: Callable[[str], str], tmp_path: Path
) -> None:
    done = proton("-n", "x", script(SCOPED), PROTON_BENCH_QUIET="")

    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "proton: wrote x.proton, x.hatchet" in done.stderr
    assert written(tmp_path) == {"x.proton", "x.hatchet"}
    assert frame_names(tmp_path / "x.hatchet") == ["ROOT", "outer", "inner"]


@pytest.mark.parametrize(
    ("option", "suffix"), [("-n", "proton"), ("-o", "hatchet"), ("-o", "hatchet_msgpack")]
)
def test_a_suffix_writes_just_that_file(
    proton: Run, script: Callable[[str], str], tmp_path: Path, option: str, suffix: str
) -> None:
    done = proton(option, f"x.{suffix}", script(SCOPED))

    assert done.returncode == 0, done.stderr
    assert written(tmp_path) == {f"x.{suffix}"}


def test_python_call_paths_begin_in_the_target(
    proton: Run, script: Callable[[str], str], tmp_path: Path
) -> None:
    done = proton("-n", "x", "-c", "python", script(SCOPED))

    assert done.returncode == 0, done.stderr
    assert frame_names(tmp_path / "x.hatchet") == ["ROOT", f"{tmp_path}/x.py:4@<module>"]


def test_no_heavy_library_lives_in_the_targets_process(
    proton: Run, script: Callable[[str], str]
) -> None:
    done = proton("--no-compat", script("import sys; print(*sorted(sys.modules))"))

    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "proton_bench" in loaded
    assert not loaded & set(HEAVY)


def test_an_unmodified_upstream_script_runs_on_ours(
    proton: Run, script: Callable[[str], str], tmp_path: Path
) -> None:
    pytest.importorskip("triton")
    target = script(
        """
        import triton.profiler as proton
        from triton.profiler import viewer
        from triton.profiler.scope import enter_scope, exit_scope
        session = proton.start("mine", context="shadow", hook="triton")
        with proton.scope("x"):
            enter_scope("y")
            exit_scope("y")
        proton.deactivate(session)
        proton.activate(session)
        proton.finalize()
        print(session, proton.__name__, type(viewer).__name__)
        """
    )

    done = proton("-n", "ours", target)

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", "proton_bench", "module"]
    assert written(tmp_path) == {"ours.proton", "ours.hatchet", "mine.hatchet"}
    for name in ("ours", "mine"):
        assert frame_names(tmp_path / f"{name}.hatchet") == ["ROOT", "x", "y"]


@pytest.mark.parametrize(("option", "ours"), [("--compat", True), ("--no-compat", False)])
def test_an_option_wins_over_the_environment(
    proton: Run, script: Callable[[str], str], tmp_path: Path, option: str, ours: bool
) -> None:
    native = Path(__file__).parents[2] / "native"  # has the file that the wheel installs
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        f"import site; site.addsitedir({str(native)!r})"
    )
    target = script("import sys; print(*(type(finder).__name__ for finder in sys.meta_path))")

    done = proton(option, target, PROTON_BENCH_COMPAT="1", PYTHONPATH=str(tmp_path / "site"))

    assert ("CompatFinder" in done.stdout.split()) is ours


@pytest.mark.parametrize(
    ("end", "code", "text"),
    [
        ("raise SystemExit(3)", 3, ""),
        ("raise SystemExit('bye')", 1, "bye\n"),
        ("raise KeyboardInterrupt", 130, "KeyboardInterrupt\n"),
        ("import threading; threading.Thread(target=lambda: None).start(); 1 / 0", 1, ""),
    ],
)
def test_the_exit_code_is_the_targets_and_the_profile_is_written(
    proton: Run, script: Callable[[str], str], tmp_path: Path, end: str, code: int, text: str
) -> None:
    target = script(SCOPED)
    (tmp_path / target).write_text((tmp_path / target).read_text() + end)

    done = proton("-n", "x", target)

    assert done.returncode == code, done.stderr
    assert text in done.stderr
    assert frame_names(tmp_path / "x.hatchet") == ["ROOT", "outer", "inner"]


def test_an_uncaught_exception_looks_as_without_the_profiler(
    proton: Run, script: Callable[[str], str], tmp_path: Path
) -> None:
    target = script("def f():\n    return [][1]\n\nf()\n")
    plain = subprocess.run([sys.executable, target], cwd=tmp_path, capture_output=True, text=True)

    done = proton("-o", "x.proton", target)

    assert done.returncode == plain.returncode == 1
    assert stderr_of_target(done) == plain.stderr


def test_a_syntax_error_looks_as_without_the_profiler(
    proton: Run, script: Callable[[str], str], tmp_path: Path
) -> None:
    done = proton(script("def f(:\n"))

    assert done.returncode == 1
    assert stderr_of_target(done).startswith(f'  File "{tmp_path}/x.py", line 1\n')
    assert "SyntaxError" in done.stderr


@pytest.mark.parametrize("name", ["", "-"])
def test_an_empty_name_prints_the_profile(
    proton: Run, script: Callable[[str], str], tmp_path: Path, name: str
) -> None:
    done = proton("-n", name, script(SCOPED))

    root, _ = json.loads(done.stdout)
    assert root["children"][0]["frame"]["name"] == "outer"
    assert written(tmp_path) == set()


def test_processes_of_the_target_find_its_main(
    proton: Run, script: Callable[[str], str], tmp_path: Path
) -> None:
    target = script(
        """
        import multiprocessing
        def double(value): return 2 * value
        if __name__ == "__main__":
            for method in ("spawn", "fork"):
                with multiprocessing.get_context(method).Pool(1) as pool:
                    print(pool.map(double, [1, 2]))
        """
    )

    done = proton("-n", "x", target, PROTON_BENCH_QUIET="")

    assert (done.returncode, done.stdout) == (0, "[2, 4]\n[2, 4]\n"), done.stderr
    assert done.stderr.count("proton: wrote") == 1


def test_undecodable_names_and_arguments_survive(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/\xff.py"
    with open(name, "w") as file:
        file.write("import os, sys; print([os.fsencode(word) for word in sys.argv])")

    done = subprocess.run(
        [sys.executable, "-m", "proton_bench", "-o", "x.proton", b"\xff.py", b"\xfe"],
        cwd=tmp_path,
        capture_output=True,
    )

    assert done.stdout == b"[b'\\xff.py', b'\\xfe']\n", done.stderr


def test_exit_handlers_and_threads_of_the_target_are_recorded(
    proton: Run, script: Callable[[str], str], tmp_path: Path
) -> None:
    target = script(
        """
        import atexit, threading
        import proton_bench as proton

        def work():
            threading.main_thread().join()
            with proton.scope("thread"):
                pass

        def last():
            with proton.scope("exit handler"):
                pass

        threading.Thread(target=work).start()
        atexit.register(last)
        """
    )

    done = proton("-n", "x", target)

    assert done.returncode == 0, done.stderr
    assert set(frame_names(tmp_path / "x.hatchet")) == {"ROOT", "thread", "exit handler"}


def test_a_forked_child_neither_writes_nor_ends_the_session(
    proton: Run, script: Callable[[str], str], tmp_path: Path
) -> None:
    target = script(
        """
        import os, sys
        import proton_bench as proton
        child = os.fork()
        if child == 0:
            sys.exit(5)
        status = os.waitpid(child, 0)[1]
        with proton.scope("parent"):
            print(os.waitstatus_to_exitcode(status))
        """
    )

    done = proton("-n", "x", target, PROTON_BENCH_QUIET="")

    assert (done.returncode, done.stdout) == (0, "5\n"), done.stderr
    assert done.stderr.count("proton: wrote") == 1
    assert frame_names(tmp_path / "x.hatchet") == ["ROOT", "parent"]


def test_everything_after_the_target_belongs_to_it(
    proton: Run, script: Callable[[str], str]
) -> None:
    target = script("import sys; print(sys.argv)")

    done = proton("-n", "x", target, "-n", "y", "--help", "--", "a b")

    assert done.stdout.strip() == str(["x.py", "-n", "y", "--help", "--", "a b"])


def test_a_script_named_like_a_command_is_reached(proton: Run, tmp_path: Path) -> None:
    (tmp_path / "view").write_text("print('the script')\n")

    for words in (["./view"], ["--", "view"], ["run", "view"]):
        assert proton(*words).stdout == "the script\n"


@pytest.mark.parametrize(
    "words",
    [
        ["python", "-m", "pkg", "-a"],
        ["python", "-c", "import pkg.__main__", "-a"],
        ["python", "-u", "pkg/__main__.py", "-a"],
    ],
)
def test_modules_and_python_command_lines_run(
    proton: Run, tmp_path: Path, words: list[str]
) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").touch()
    (tmp_path / "pkg" / "__main__.py").write_text("import sys; print(sys.argv[1:])\n")

    done = proton("-o", "x.proton", *words)

    assert done.stdout == f"{[words[-1]]}\n", done.stderr
    assert done.returncode == 0


def test_flags_of_the_interpreter_reach_the_target(
    proton: Run, script: Callable[[str], str]
) -> None:
    target = script("import sys; print(sys.flags.optimize, sys.warnoptions)")

    done = proton("python", "-OO", "-W", "error::BytesWarning", target)

    assert done.stdout == "2 ['error::BytesWarning']\n", done.stderr


@pytest.mark.parametrize("flag", ["-P", "-u"])
def test_the_module_path_is_as_without_the_profiler(
    proton: Run, script: Callable[[str], str], tmp_path: Path, flag: str
) -> None:
    target = script("import sys; print(*sys.path, sep='\\n')")
    plain = subprocess.run(
        [sys.executable, flag, target], cwd=tmp_path, capture_output=True, text=True
    )

    done = proton("python", flag, target)

    assert done.stdout == plain.stdout, done.stderr


def test_the_outcome_is_reported_where_the_target_closed_stderr(
    proton: Run, script: Callable[[str], str], tmp_path: Path
) -> None:
    target = script("import io, sys; sys.stderr = io.StringIO()")

    done = proton("-n", "x", target, PROTON_BENCH_QUIET="")

    assert "proton: wrote x.proton, x.hatchet" in done.stderr


def test_modules_in_the_current_folder_shadow_nothing_of_ours(proton: Run, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.py").write_text("print('ran')\n")
    (tmp_path / "signal.py").write_text("raise SystemExit('shadowed')\n")

    done = subprocess.run(
        [sys.executable, "-P", "-m", "proton_bench", "-o", "x.proton", "sub/x.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr


def test_pytest_runs_with_its_own_exit_code(proton: Run, tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text("def test_a(): pass\ndef test_b(): assert False\n")

    done = proton("-n", "x", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=results.xml")

    assert done.returncode == 1, done.stderr
    cases = ElementTree.parse(tmp_path / "results.xml").iter("testcase")
    assert [case.get("name") for case in cases if case.find("failure") is not None] == ["test_b"]
    assert {"x.proton", "x.hatchet"} <= written(tmp_path)
    assert any("test_x.py" in name for name in frame_names(tmp_path / "x.hatchet"))


def test_ranks_do_not_overwrite_one_another(
    proton: Run, script: Callable[[str], str], tmp_path: Path
) -> None:
    target = script(SCOPED)

    for rank in ("0", "1"):
        proton("-o", "x.proton", target, RANK=rank, WORLD_SIZE="2")
    proton("-o", "{rank}-{%JOB}.proton", target, RANK="1", WORLD_SIZE="2", JOB="night")

    assert written(tmp_path) == {"x.rank0.proton", "x.rank1.proton", "1-night.proton"}


def test_the_version_and_help_are_shown(
    proton: Run, proton_here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")

    assert re.fullmatch(r"proton-bench \d+\.\d+\S*\n", proton("--version").stdout)
    assert proton_here("-V").returncode == 0
    for shown in (proton("--help"), proton_here("-h"), proton_here()):
        assert all(command in shown.stdout for command in ("run", "view", "export", "doctor"))
    assert "--instrument" in proton_here("run", "-h").stdout
