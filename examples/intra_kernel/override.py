"""Scopes in a kernel without changes to its source: its intermediate representation is edited.

python examples/intra_kernel/override.py

The one command runs the kernel and has Triton dump it, brackets every load and store in the dumped
TTGIR with records, runs it again with that file instead of Triton's own, and shows the tree.
Without a GPU it compiles for one, shows the file with its records, and stops there. Where rules are
enough (``proton --instrument=loads,stores``), use those; this way needs only an editor.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["bracket", "dump", "main", "run_with"]

KERNEL = "plain_add_kernel"
PLAIN = Path(__file__).with_name("plain_add.py")
OPERATION = re.compile(r"(?P<indent>\s*)(?:%\S+ = )?tt\.(?P<name>load|store)\b")


def bracket(ttgir: str) -> str:
    """Put a record before and one after every load and store.

    Args:
        ttgir: Text of a kernel; operations stand on lines of their own.

    Returns:
        The same with scopes ``load.0``, ``load.1``, ``store.0`` and so on.
    """
    lines, counts = [], {"load": 0, "store": 0}
    for line in ttgir.splitlines():
        found = OPERATION.match(line)
        if not found:
            lines.append(line)
            continue
        name = found["name"]
        scope = f'"{name}.{counts[name]}"'
        counts[name] += 1
        start, end = (
            f"{found['indent']}proton.record {which} {scope}" for which in ("start", "end")
        )
        lines += [start, line, end]
    return "\n".join(lines) + "\n"


def dump(folder: Path) -> Path:
    """Run the kernel in a process of its own; return where Triton dumped its TTGIR.

    Args:
        folder: Where Triton makes a folder per kernel.
    """
    _run("--plain", TRITON_KERNEL_DUMP="1", TRITON_DUMP_DIR=str(folder))
    found = sorted(folder.glob(f"*/{KERNEL}.ttgir"))
    if not found:
        raise SystemExit(f"Triton dumped no {KERNEL}.ttgir below {folder}")
    return found[0]


def run_with(folder: Path, output: Path) -> None:
    """Run the kernel with the files of a folder instead of Triton's own, and record it.

    Args:
        folder: What ``dump`` filled, edited.
        output: Path of the profile, without a suffix.
    """
    _run(str(output), TRITON_KERNEL_OVERRIDE="1", TRITON_OVERRIDE_DIR=str(folder))


def main() -> None:
    """Dump, bracket, run again and show the tree."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-n", "--name", default="override", help="profile, without a suffix")
    output = Path(parser.parse_args().name).absolute()
    with TemporaryDirectory(prefix="override_") as folder:
        dumped = dump(Path(folder, "dump"))
        edited = Path(folder, "override", dumped.parent.name, dumped.name)
        edited.parent.mkdir(parents=True)
        edited.write_text(bracket(dumped.read_text(encoding="utf-8")), encoding="utf-8")
        print("".join(_around_records(edited)), end="")
        if not _has_gpu():
            print("override: no GPU: the kernel with its records is not run")
            return
        run_with(edited.parents[1], output)
    subprocess.run(
        [sys.executable, "-m", "proton_bench", "view", f"{output}.hatchet"]
        + ["-m", "cycles,normalized_cycles"],
        check=True,
    )


def _run(*arguments: str, **variables: str) -> None:
    # Triton reads these while it is imported, so they are those of a fresh process; what it has in
    # its cache it neither dumps nor overrides.
    environment = {**os.environ, **variables, "TRITON_ALWAYS_COMPILE": "1", "TRITON_INTERPRET": "0"}
    subprocess.run([sys.executable, str(PLAIN), *arguments], check=True, env=environment)


def _around_records(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    shown = [
        at for at, line in enumerate(lines) if OPERATION.match(line) or "proton.record" in line
    ]
    return [lines[at] for at in shown]


def _has_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


if __name__ == "__main__":
    main()
