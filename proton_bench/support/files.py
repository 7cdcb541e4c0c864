"""Writes files in one step, and accesses untrusted folders safely.

A file is written under a new random name in its folder, flushed to the disk and renamed, and then
the folder is flushed. Readers see the old file or the new one, any number of processes may write
one name at once, and existing files are never opened for writing. Native code of recordings follows
the same rules (``native/src/writer/file/scratch_file.h``).

`Folder` accesses the content of a folder through descriptors and never follows symbolic links, so a
repository cannot redirect a command to files elsewhere.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from proton_bench.errors import OutputError, ProfileFormatError, UsageError
from proton_bench.support.outputs import RawOutput, blamed, opened_special, stream_to, unwritable

__all__ = [
    "Folder",
    "is_scratch",
    "opened_output",
    "refused",
    "remove_files",
    "unwritable",
    "write_file",
]

_SCRATCH = re.compile(r"\.proton-tmp-[0-9a-f]{16}")
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# A pipe or device instead of a file must not block, and a terminal must not become our controlling
# terminal.
_FILE_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# Errors of file systems that cannot flush a folder, and of unreadable folders.
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF)
_TRIES = 100
# A link, a folder, or nothing where a file was expected.
_NOT_OURS = (UsageError, FileNotFoundError, NotADirectoryError, IsADirectoryError)


# -- files that a user names -------------------------------------------------------------------
def write_file(file: Path, content: bytes | str) -> None:
    """Write a file, whole or not at all.

    A link stays a link; a device, a pipe or an open descriptor such as ``/dev/stdout`` is written
    to, not replaced.

    Args:
        file: The file.
        content: Its content; characters of a text that UTF-8 cannot express are escaped.

    Raises:
        OutputError: It cannot be written; what was there before still is, unless the error says
            otherwise.
    """
    if isinstance(content, str):
        content = content.encode("utf-8", "backslashreplace")
    with opened_output(file) as stream:
        stream.write(content)


@contextmanager
def opened_output(file: Path) -> Iterator[IO[bytes]]:
    """Open a file that appears complete once the block ends, and not at all if it fails.

    Other errors of the block are passed on.

    Raises:
        OutputError: It cannot be written; what was there before still is, unless the error says
            otherwise.
    """
    with blamed(file):
        special = opened_special(file)
    if special is not None:
        # Replacing /dev/null would make it an ordinary file.
        with stream_to(special, file) as stream:
            yield stream
        return
    with blamed(file):
        place = Path(os.path.realpath(file))
        folder = Folder.of_user(place.parent)
    with folder, folder.writing(place.name, named=file) as stream:
        yield stream


@contextmanager
def refused(what: str) -> Iterator[None]:
    """Turn an error of the file system into one that says what could not be done."""
    try:
        yield
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        where = f" ({error.filename!a})" if error.filename else ""
        raise OutputError(
            f"cannot {what}: {error.strerror or error}{where}; choose another folder, or free space"
        ) from None


def remove_files(folder: Path, names: Iterable[str]) -> None:
    """Remove files below a folder, and nothing else.

    A link on the way to a file is not followed, and a folder in the place of a file stays.

    Args:
        folder: The folder, which may be a link.
        names: Names of the files, relative to it.

    Raises:
        OSError: A file cannot be removed.
    """
    with Folder.of_user(folder) as top:
        for name in names:
            with contextlib.suppress(*_NOT_OURS):
                _remove_below(top, PurePosixPath(name))


def _remove_below(place: Folder, path: PurePosixPath) -> None:
    if path.is_absolute() or not path.name or ".." in path.parts:
        return
    with ExitStack() as opened:
        for part in path.parts[:-1]:
            place = opened.enter_context(place.folder(part))
        place.remove(path.name)


def is_scratch(name: str) -> bool:
    """Return whether a name is that of an unfinished file."""
    return _SCRATCH.fullmatch(name) is not None


# -- folders -----------------------------------------------------------------------------------
class Folder:
    """An open folder. Symbolic links in it are never followed.

    Attributes:
        path: Its name when it was opened, for messages.
    """

    def __init__(self, descriptor: int, path: Path) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def open(cls, path: Path, *, create: bool = False) -> Folder:
        """Open a folder that is not a link; folders above it may be links.

        Raises:
            UsageError: It is a link, pipe or device.
            OSError: It is not there, is a file, or cannot be opened or made.
        """
        if create:
            path.parent.mkdir(parents=True, exist_ok=True)
        return cls(_open_folder(str(path), path, create=create), path)

    @classmethod
    def of_user(cls, path: Path) -> Folder:
        """Open a folder that a user named, through links as well.

        Raises:
            OSError: It is not there, or cannot be opened.
        """
        try:
            return cls(os.open(path, _FOLDER_FLAGS), path)
        except PermissionError:
            # Files can be created in folders that cannot be listed.
            return cls(os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC), path)

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder, and release its lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def folder(self, name: str, *, create: bool = False) -> Folder:
        """Open a folder in this one.

        Raises:
            UsageError: It is a link, pipe or device.
            OSError: It is not there, is a file, or cannot be opened or made.
        """
        path = self.path / name
        return Folder(_open_folder(name, path, create=create, within=self._descriptor), path)

    def names(self) -> list[str]:
        """Return the names in it, sorted."""
        return sorted(os.listdir(self._descriptor))

    def mode(self, name: str) -> int | None:
        """Return kind and permissions of an entry, not following links; None if there is none."""
        try:
            return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None

    def make(self, name: str) -> None:
        """Create a folder."""
        os.mkdir(name, dir_fd=self._descriptor)

    def read(self, name: str, most: int) -> bytes:
        """Return the content of a file.

        Args:
            name: The file.
            most: Most bytes that it may have.

        Raises:
            ProfileFormatError: It is not a file, or larger.
            OSError: It is not there, or cannot be read.
        """
        try:
            handle = os.open(name, os.O_RDONLY | _FILE_FLAGS, dir_fd=self._descriptor)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENXIO):
                raise
            raise ProfileFormatError(f"it is {self._kind(name)} instead of a file") from None
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            os.close(handle)
            raise ProfileFormatError(f"it is {_kind(status.st_mode)} instead of a file")
        with os.fdopen(handle, "rb") as stream:
            if status.st_size > most:
                raise ProfileFormatError(f"it has {status.st_size} bytes, more than {most}")
            content = stream.read(most + 1)
        if len(content) > most:
            raise ProfileFormatError(f"it has more than {most} bytes")
        return content

    def open_lock(self, name: str, *, create: bool = True) -> int:
        """Return a descriptor of a lock file.

        Raises:
            UsageError: It is a link, not a file, or has a second name elsewhere.
            OSError: It is not there, or cannot be opened or made.
        """
        flags = os.O_RDWR | os.O_CREAT if create else os.O_RDONLY
        try:
            handle = os.open(name, flags | _FILE_FLAGS, 0o666, dir_fd=self._descriptor)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
                raise
            raise _not_plain(self.path / name, self._kind(name), "file") from None
        status = os.fstat(handle)
        if stat.S_ISREG(status.st_mode) and status.st_nlink <= 1:
            return handle
        os.close(handle)
        is_file = stat.S_ISREG(status.st_mode)
        kind = "a file with several names" if is_file else _kind(status.st_mode)
        raise _not_plain(self.path / name, kind, "file")

    @contextmanager
    def writing(
        self,
        name: str,
        *,
        mode: int = 0o666,
        scratch: Folder | None = None,
        named: Path | None = None,
    ) -> Iterator[IO[bytes]]:
        """Open a file that appears in the folder once the block ends.

        Args:
            name: The file; a link of this name is itself replaced.
            mode: Permissions, reduced by the umask.
            scratch: Folder of the same file system to write it in; None for this one.
            named: Name for an `OutputError` that replaces any `OSError` of the file; those of the
                block pass.

        Raises:
            OSError: It cannot be written; what was there before still is.
            OutputError: It was written, but a power failure may undo that.
        """
        place = self if scratch is None else scratch
        with blamed(named):
            beside, handle = place.open_scratch(mode)
        with place.undone(beside):
            with stream_to(RawOutput(handle, named), named) as stream:
                yield stream
                stream.flush()
                with blamed(named):
                    os.fsync(handle)
            with blamed(named):
                place.move(beside, self, name)

    def write(self, name: str, content: bytes, *, scratch: Folder | None = None) -> None:
        """Write a file; see `writing`."""
        with self.writing(name, scratch=scratch) as stream:
            stream.write(content)

    def open_scratch(self, mode: int) -> tuple[str, int]:
        """Create a file under an unused name, and return the name and a descriptor."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE_FLAGS
        for _ in range(_TRIES):
            name = f".proton-tmp-{os.urandom(8).hex()}"
            with contextlib.suppress(FileExistsError):
                return name, os.open(name, flags, mode, dir_fd=self._descriptor)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(self.path))

    def move(self, name: str, target: Folder, new_name: str) -> None:
        """Rename an entry, maybe into another folder, and flush.

        Raises:
            OSError: It cannot be renamed.
            OutputError: It was renamed, but a power failure may undo that.
        """
        os.rename(name, new_name, src_dir_fd=self._descriptor, dst_dir_fd=target.fileno())
        try:
            target.sync()
        except OSError as error:
            raise OutputError(
                f"{str(target.path / new_name)!a} is in its place, but after a loss of power what "
                f"was there before may be back: its folder cannot be flushed: {error.strerror}"
            ) from None

    def remove(self, name: str) -> None:
        """Remove a file, or a link itself, if it is there.

        Raises:
            OSError: It is a folder, or cannot be removed.
        """
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._descriptor)

    def remove_folder(self, name: str, is_own: Callable[[str], bool]) -> None:
        """Remove files of a folder, and the folder if nothing is left in it.

        Args:
            name: The folder.
            is_own: Whether a name is one of the files to remove.

        Raises:
            UsageError: It is a link, pipe or device.
            OSError: Something cannot be removed, or was left.
        """
        with self.folder(name) as folder:
            for file in filter(is_own, folder.names()):
                folder.remove(file)
        os.rmdir(name, dir_fd=self._descriptor)

    @contextmanager
    def undone(self, name: str) -> Iterator[None]:
        """Remove a file, or a folder with its files, that the block made, if the block fails."""
        try:
            yield
        except BaseException:
            with contextlib.suppress(OSError, UsageError):
                try:
                    self.remove(name)
                except (IsADirectoryError, PermissionError):
                    self.remove_folder(name, lambda _: True)
            raise

    def sync(self) -> None:
        """Flush the folder to the disk."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            if error.errno not in _NO_SYNC:
                raise

    def _kind(self, name: str) -> str:
        mode = self.mode(name)
        return "gone" if mode is None else _kind(mode)


def _open_folder(name: str, path: Path, *, create: bool, within: int | None = None) -> int:
    if create:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=within)
    try:
        return os.open(name, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=within)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        try:
            mode = os.stat(name, dir_fd=within, follow_symlinks=False).st_mode
        except OSError:
            mode = stat.S_IFREG
        if stat.S_ISREG(mode):
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise _not_plain(path, _kind(mode), "folder") from None


def _not_plain(path: Path, kind: str, wanted: str) -> UsageError:
    return UsageError(
        f"{str(path)!a} is {kind}, where proton_bench needs its own {wanted} and follows no "
        "links; remove it, or name the real path"
    )


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFDIR: "a folder",
        stat.S_IFREG: "a file",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")
