"""Signals: the profile is written natively, also while the main thread sits in C."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

import pytest
from integration.outputs import written
from integration.running import (
    IN_C,
    ended,
    source,
    started,
    wait_for_line,
    wait_for_text,
)

from proton_bench.formats.registry import read_profile

pytest.importorskip("proton_bench._native")

RUN = ("-m", "proton_bench", "-n", "x", "x.py")
BOTH_FILES = {"x.proton", "x.hatchet"}
WRITTEN_BY_A_SIGNAL = {"x.proton"}
SCOPED = """
    with proton.scope("before"):
        pass
    proton.enter_scope("open")
"""


def write_script(folder: Path, *parts: str) -> None:
    (folder / "x.py").write_text(source(IN_C, *parts))


def names(path: Path) -> list[str]:
    profile = read_profile(path)
    return [profile.name(row) for row in range(len(profile))]


@pytest.mark.parametrize("library", ["ctypes.PyDLL", "ctypes.CDLL"], ids=["with GIL", "without"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_during_a_c_call_writes_the_profile_and_ends_with_its_code(
    tmp_path: Path, library: str, number: signal.Signals
) -> None:
    write_script(tmp_path, SCOPED, f"ready(); sit_in_c({library})")

    with started(RUN, tmp_path) as running:
        wait_for_line(running)
        running.send_signal(number)
        code, _, err = ended(running)

    assert code == 128 + number
    assert f"proton: {number.name}: wrote x.proton" in err
    assert written(tmp_path) == WRITTEN_BY_A_SIGNAL
    assert names(tmp_path / "x.proton") == ["ROOT", "before", "open"]
    profile = read_profile(tmp_path / "x.proton")
    assert not profile.partial
    assert profile.provenance["signal"] == number.name
    assert profile.provenance["end_time_ns"] >= profile.provenance["start_time_ns"]


def test_a_bare_except_does_not_swallow_the_signal(tmp_path: Path) -> None:
    write_script(
        tmp_path,
        """
        ready()
        while True:
            try:
                sit_in_c(ctypes.CDLL)
            except:
                print("swallowed", flush=True)
        """,
    )

    with started(RUN, tmp_path) as running:
        wait_for_line(running)
        running.terminate()
        code, out, _ = ended(running)

    assert (code, out) == (143, "")
    assert written(tmp_path) == WRITTEN_BY_A_SIGNAL


@pytest.mark.parametrize("library", ["ctypes.PyDLL", "ctypes.CDLL"], ids=["with GIL", "without"])
def test_a_program_that_the_signal_wakes_for_its_end_still_ends_by_it(
    tmp_path: Path, library: str
) -> None:
    write_script(tmp_path, SCOPED, f"ready(); {library}(None).sleep(60)")

    with started(RUN, tmp_path) as running:
        wait_for_line(running)
        running.terminate()
        code, _, err = ended(running)

    assert code == 143, err
    assert read_profile(tmp_path / "x.proton").provenance["signal"] == "SIGTERM"


def test_text_that_python_still_buffers_is_not_lost(tmp_path: Path) -> None:
    write_script(tmp_path, "sys.stdout.write('kept'); ready(); sit_in_c(ctypes.CDLL)")

    with started(RUN, tmp_path) as running:
        wait_for_line(running)
        running.terminate()
        code, out, _ = ended(running)

    assert (code, out) == (143, "kept")


@pytest.mark.parametrize("library", ["ctypes.PyDLL", "ctypes.CDLL"], ids=["with GIL", "without"])
def test_the_targets_own_handler_is_called_and_decides(tmp_path: Path, library: str) -> None:
    write_script(
        tmp_path,
        SCOPED,
        f"""
        import signal
        def stop(number, frame):
            print("handler of the target", flush=True)
            sys.exit(143)
        signal.signal(signal.SIGTERM, stop)
        ready()
        sit_in_c({library})
        """,
    )

    with started(RUN, tmp_path) as running:
        wait_for_line(running)
        running.terminate()
        code, out, _ = ended(running)

    assert (code, out) == (143, "handler of the target\n")
    assert written(tmp_path) == BOTH_FILES
    assert not read_profile(tmp_path / "x.proton").partial


def test_a_handler_that_leaves_at_once_finds_the_profile_written(tmp_path: Path) -> None:
    write_script(
        tmp_path,
        SCOPED,
        """
        import signal
        signal.signal(signal.SIGTERM, lambda number, frame: os._exit(9))
        ready()
        sit_in_c(ctypes.CDLL)
        """,
    )

    with started(RUN, tmp_path) as running:
        wait_for_line(running)
        running.terminate()
        code, _, _ = ended(running)

    assert code == 9
    assert written(tmp_path) == WRITTEN_BY_A_SIGNAL
    assert names(tmp_path / "x.proton") == ["ROOT", "before", "open"]
    assert not read_profile(tmp_path / "x.proton").partial


def test_a_handler_may_refuse_to_end(tmp_path: Path) -> None:
    write_script(
        tmp_path,
        """
        import signal
        seen = []
        signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
        ready()
        while not seen:
            ctypes.CDLL(None).sleep(60)
        with proton.scope("after"):
            pass
        """,
    )

    with started(RUN, tmp_path) as running:
        wait_for_line(running)
        running.terminate()
        code, _, err = ended(running)

    assert code == 0, err
    assert names(tmp_path / "x.proton") == ["ROOT", "after"]


def test_a_second_signal_is_answered_as_the_target_then_wishes(tmp_path: Path) -> None:
    write_script(
        tmp_path,
        """
        import signal
        def only_once(number, frame):
            with proton.scope("between"):
                signal.signal(number, signal.SIG_DFL)
            ready()
        signal.signal(signal.SIGTERM, only_once)
        ready()
        sit_in_c(ctypes.CDLL)
        """,
    )

    with started(RUN, tmp_path) as running:
        wait_for_line(running)
        running.terminate()
        wait_for_line(running)
        after_the_first = read_profile(tmp_path / "x.proton")
        running.terminate()
        code, _, err = ended(running)

    assert code == 143, err
    assert after_the_first.partial
    assert not read_profile(tmp_path / "x.proton").partial
    assert names(tmp_path / "x.proton") == ["ROOT", "between"]


def test_two_signals_at_once_end_the_process_once(tmp_path: Path) -> None:
    write_script(tmp_path, SCOPED, "ready(); sit_in_c(ctypes.PyDLL)")

    with started(RUN, tmp_path) as running:
        wait_for_line(running)
        running.terminate()
        running.send_signal(signal.SIGHUP)
        code, _, err = ended(running)

    assert code in {128 + signal.SIGTERM, 128 + signal.SIGHUP}
    assert err.count(": wrote x.proton") == 1
    assert names(tmp_path / "x.proton") == ["ROOT", "before", "open"]


def test_an_output_that_cannot_be_written_is_an_error_and_no_other_exit_code(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    write_script(tmp_path, SCOPED, "os.rmdir('out'); ready(); sit_in_c(ctypes.CDLL)")

    with started([*RUN[:3], "out/x.proton", "x.py"], tmp_path) as running:
        wait_for_line(running)
        running.terminate()
        code, _, err = ended(running)

    assert code == 143
    assert (
        f"proton: SIGTERM: error: cannot write '{folder}/x.proton': {os.strerror(errno.ENOENT)}"
        in err
    )
    assert ": wrote" not in err
    assert written(tmp_path) == set()


def test_a_linked_output_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "x.proton").symlink_to("far/real.proton")
    write_script(tmp_path, SCOPED, "ready(); sit_in_c(ctypes.CDLL)")

    with started(RUN, tmp_path) as running:
        wait_for_line(running)
        running.terminate()
        code, _, _ = ended(running)

    assert code == 143
    assert (tmp_path / "x.proton").is_symlink()
    assert names(tmp_path / "far" / "real.proton") == ["ROOT", "before", "open"]
    assert written(tmp_path) == WRITTEN_BY_A_SIGNAL | {"far"}


def test_handlers_of_asyncio_work(tmp_path: Path) -> None:
    write_script(
        tmp_path,
        """
        import asyncio, signal
        async def main():
            stop = asyncio.Event()
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
            ready()
            await stop.wait()
            with proton.scope("cleaned up"):
                pass
        asyncio.run(main())
        """,
    )

    with started(RUN, tmp_path) as running:
        wait_for_line(running)
        running.terminate()
        code, _, err = ended(running)

    assert code == 0, err
    assert "cleaned up" in names(tmp_path / "x.proton")


def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    write_script(
        tmp_path,
        """
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.kill(os.getpid(), signal.SIGTERM)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        print(signal.getsignal(signal.SIGTERM).name, flush=True)
        ready()
        sit_in_c(ctypes.CDLL)
        """,
    )

    with started(RUN, tmp_path) as running:
        wait_for_line(running, "SIG_DFL")
        wait_for_line(running)
        running.terminate()
        code, _, _ = ended(running)

    assert code == 143
    assert written(tmp_path) == WRITTEN_BY_A_SIGNAL


def test_an_interrupt_is_pythons_keyboard_interrupt(tmp_path: Path) -> None:
    write_script(
        tmp_path,
        SCOPED,
        """
        try:
            ready()
            sit_in_c(ctypes.CDLL)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """,
    )

    with started(RUN, tmp_path) as running:
        wait_for_line(running)
        running.send_signal(signal.SIGINT)
        code, out, err = ended(running)

    assert (code, out) == (0, "interrupted\n"), err
    assert written(tmp_path) == BOTH_FILES


# Blocks its thread for ever, despite signals. The other thread gets Python's
# lock, and so says "ready", only once the main thread has given it away for the call in C.
DEAF = """
    import threading

    def deaf():
        sys.setswitchinterval(1000)
        called = threading.Event()
        threading.Thread(target=lambda: (called.wait(), ready()), daemon=True).start()
        lock = (ctypes.c_char * 64)()
        library = ctypes.CDLL(None)
        library.pthread_mutex_init(lock, None)
        library.pthread_mutex_lock(lock)
        block = library.pthread_mutex_lock
        called.set()
        block(lock)
"""


def test_interrupts_that_the_main_thread_never_takes_write_and_then_end(tmp_path: Path) -> None:
    write_script(tmp_path, DEAF, SCOPED, "deaf()")

    with started(RUN, tmp_path) as running:
        wait_for_line(running)
        running.send_signal(signal.SIGINT)
        wait_for_text(running, "does not respond")
        after_the_first = read_profile(tmp_path / "x.proton")
        running.send_signal(signal.SIGINT)
        code, _, err = ended(running)

    assert code == 130, err
    assert after_the_first.partial
    assert not read_profile(tmp_path / "x.proton").partial
    assert names(tmp_path / "x.proton") == ["ROOT", "before", "open"]


def test_a_handler_of_c_code_is_called_once_the_profile_is_written(tmp_path: Path) -> None:
    write_script(
        tmp_path,
        DEAF,
        SCOPED,
        """
        import faulthandler, signal
        faulthandler.register(signal.SIGTERM, file=sys.stderr)
        signal.signal(signal.SIGUSR2, signal.SIG_DFL)
        deaf()
        """,
    )

    with started(RUN, tmp_path) as running:
        wait_for_line(running)
        running.terminate()
        wait_for_text(running, "most recent call first")
        found = written(tmp_path)
        running.kill()
        code, _, _ = ended(running)

    assert code == -signal.SIGKILL
    assert found == WRITTEN_BY_A_SIGNAL
    assert read_profile(tmp_path / "x.proton").partial


def test_pytest_leaves_by_the_signal_and_not_by_a_failed_test(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(
        source(
            IN_C,
            """
            def test_swallows():
                ready()
                while True:
                    try:
                        sit_in_c(ctypes.CDLL)
                    except:
                        pass
            """,
        )
    )
    run_pytest = ("-m", "pytest", "--proton", "--proton-name", "x", "-q", "-p", "no:cacheprovider")

    with started([*run_pytest, "-s", "test_x.py"], tmp_path) as running:
        wait_for_line(running)
        running.terminate()
        code, out, err = ended(running)

    assert code == 143, out + err
    assert "failed" not in out
    assert "call" in names(tmp_path / "x.proton")


def test_a_library_session_leaves_signals_alone_unless_asked(tmp_path: Path) -> None:
    write_script(
        tmp_path,
        """
        session = proton.start("x")
        with proton.scope("a"):
            pass
        ready()
        sit_in_c(ctypes.CDLL)
        """,
    )

    with started(["x.py"], tmp_path) as running:
        wait_for_line(running)
        running.terminate()
        left_alone = ended(running)[0]
    unasked = written(tmp_path)
    with started(["x.py"], tmp_path, PROTON_BENCH_SIGNALS="1") as running:
        wait_for_line(running)
        running.terminate()
        asked = ended(running)[0]

    assert left_alone == asked == -signal.SIGTERM
    assert unasked == set()
    assert names(tmp_path / "x.proton") == ["ROOT", "a"]
    assert written(tmp_path) == {"x.proton"}


def test_the_handlers_are_the_processs_own_again_after_the_last_session(tmp_path: Path) -> None:
    write_script(
        tmp_path,
        """
        import signal
        plain = signal.signal
        proton.finalize(proton.start("x"))
        assert signal.signal is plain
        ready()
        sit_in_c(ctypes.CDLL)
        """,
    )

    with started(["x.py"], tmp_path, PROTON_BENCH_SIGNALS="1") as running:
        wait_for_line(running)
        running.terminate()
        code, _, err = ended(running)

    assert code == -signal.SIGTERM, err
    assert "proton:" not in err
