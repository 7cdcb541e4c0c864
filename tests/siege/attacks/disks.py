"""Disks that are full, have no room for names, or may only be read."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from pathlib import Path

from siege.attack import Attack, BreachError, Trial
from siege.attacks.readers import load
from siege.attacks.writers import OLD, WRITERS, Writer, check_output, lay_out, make_inputs

import proton_bench as proton
from proton_bench.cli import main
from proton_bench.errors import OutputError
from proton_bench.formats.registry import read_profile

NEW_NAMESPACES = 0x00020000 | 0x10000000  # CLONE_NEWNS | CLONE_NEWUSER
READ_ONLY, REMOUNT, PRIVATE = 1, 32, 1 << 18 | 1 << 14  # MS_*
PAGE_KB = 4
_TO_FILES = tuple(each for each in WRITERS if each.out)


class NoDiskError(Exception):
    """A process cannot mount its own file system on this machine."""


def _call(result: int, what: str) -> None:
    if result != 0:
        raise NoDiskError(f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(folder: Path, room: str) -> None:
    """Give this process a small file system of its own, which ends with it."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    _call(libc.unshare(NEW_NAMESPACES), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    _call(libc.mount(b"none", b"/", None, PRIVATE, None), "mount")
    _call(libc.mount(b"tmpfs", bytes(folder), b"tmpfs", 0, room.encode()), "mount of tmpfs")


def make_read_only(folder: Path) -> None:
    """Make it read-only."""
    libc = ctypes.CDLL(None, use_errno=True)
    _call(libc.mount(b"none", bytes(folder), None, READ_ONLY | REMOUNT, None), "remount")


def can_mount() -> bool:
    """Return whether a process can do that on this machine."""
    child = os.fork()
    if not child:
        code = 1
        try:
            mount(Path("/tmp"), "size=64k")
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def use(folder: Path, writer: Writer | None, way: tuple[str, str]) -> None:
    """Write to such a disk in a separate process, and check the files afterwards."""
    kind, room = way
    disk = folder / "disk"
    disk.mkdir()
    mount(disk, room)
    out = disk / (writer.out if writer else "out.proton")
    out.write_bytes(OLD)
    if kind == "read-only":
        make_read_only(disk)
    code = _command(folder, writer, out) if writer else _recording(out)
    is_new = out.read_bytes() != OLD
    if code not in (0, 74) and not (writer and writer.words[0] == "gate" and code in (1, 3)):
        raise BreachError(f"exit code {code}; {_said(folder)}")
    if code == 74 and is_new:
        raise BreachError("it says that it failed, and replaced the file")
    if code != 74 and not is_new:
        raise BreachError(f"it says nothing, and wrote nothing; {_said(folder)}")
    if is_new and writer:
        check_output(writer, out)
    elif is_new:
        read_profile(out)
    if code == 74 and writer and len(_said(folder).splitlines()) != 1:
        raise BreachError(f"not one line: {_said(folder)}")
    left = sorted(os.listdir(disk))
    if left != [out.name]:
        raise BreachError(f"left {left}")


def _said(folder: Path) -> str:
    return (folder / "stderr").read_text(errors="replace")


def _command(folder: Path, writer: Writer, out: Path) -> int:
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open("stderr", os.O_WRONLY | os.O_CREAT), 2)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", closefd=False)
    code = main(writer.line(out))
    sys.stderr.flush()
    return code


def _recording(out: Path) -> int:
    (out.parents[1] / "stderr").touch()
    try:
        session = proton.start(str(out.with_suffix("")), backend="cpu")
        for number in range(200):
            with proton.scope(f"scope {number}", {"n": 1}):
                pass
        proton.finalize(session, "proton")
    except OutputError:
        return 74
    return 0


class Disks(Attack):
    """Every writer of files, and a recording."""

    name = "disks"
    about = "export, merge, report, gate and recordings on disks that are full or read-only"
    share = 1.0

    def prepare(self, folder: Path) -> None:
        """Load everything, and see whether there can be such disks."""
        load(folder)
        make_inputs(folder)
        self._inputs = folder
        self._can = can_mount()

    def attempt(self, trial: Trial) -> None:
        """Write to one disk."""
        if not self._can:
            raise BreachError("this machine lets no process mount a file system of its own")
        lay_out(self._inputs, trial.folder)
        writer = trial.dice.choice((*_TO_FILES, None))
        way = trial.dice.choice(
            (
                ("full", f"size={PAGE_KB * trial.dice.randrange(1, 12)}k"),
                ("full", f"size={PAGE_KB * trial.dice.randrange(1, 400)}k"),
                ("no names", "size=10m,nr_inodes=2"),
                ("read-only", "size=10m"),
            )
        )
        fault = _in_fork(trial.folder, writer, way)
        if fault:
            shutil.rmtree(trial.folder / "store")
            words = " ".join(writer.words) if writer else "a recording"
            raise BreachError(f"{words} on a disk that is {way[0]} ({way[1]}): {fault}")


def _in_fork(folder: Path, writer: Writer | None, way: tuple[str, str]) -> str:
    answer = folder / "answer"
    child = os.fork()
    if not child:
        text = ""
        try:
            use(folder, writer, way)
        except BaseException as error:  # noqa: BLE001 - it is reported
            text = f"{type(error).__name__}: {error}"
        finally:
            answer.write_text(text)
            os._exit(0)
    status = os.waitpid(child, 0)[1]
    return answer.read_text() if status == 0 else f"ended with {os.waitstatus_to_exitcode(status)}"
