"""Draws view.svg, the picture of README.md: the screen of ``proton view`` in a terminal.

python docs/pictures/picture.py               # draw it again from train.proton
python docs/pictures/picture.py keep FILE     # first keep FILE, a profile of train.py, as that

``proton train.py`` recorded the profile, with transformers on a CPU.
"""

from __future__ import annotations

import dataclasses
import fcntl
import html
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

from rich.console import Console
from rich.text import Text

from proton_bench.formats.registry import read_profile, write_profile

__all__ = ["PICTURE", "WORDS", "screen", "text_of"]

FOLDER = Path(__file__).parent
PICTURE = FOLDER / "view.svg"
PROFILE = FOLDER / "train.proton"
WORDS = ("view", PROFILE.name)
COLUMNS, LINES = 100, 28
# The folder that the kept profile names in place of the one it was recorded in.
HOME = "/home/you"
LIBRARIES = re.compile(r"/[^@]*/((?:site-packages|python3\.\d+)/)")


def screen() -> str:
    """Return what the command shows in a terminal, with its escape sequences."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    settings = {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(LINES)}
    unset = ("NO_COLOR", "FORCE_COLOR")
    known = {name: value for name, value in os.environ.items() if name not in unset}
    process = subprocess.Popen(
        [sys.executable, "-m", "proton_bench", *WORDS],
        cwd=FOLDER,
        env=known | settings,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
    )
    os.close(theirs)
    found = b""
    while part := _read(ours):
        found += part
    os.close(ours)
    if process.wait():
        raise SystemExit(process.returncode)
    return found.decode().replace("\r\n", "\n").rstrip()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # Linux says so when the other end is closed
        return b""


def draw(shown: str) -> str:
    """Return the screen as SVG that loads no fonts."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), legacy_windows=False)
    console.print(Text.from_ansi(shown), soft_wrap=True)
    svg = console.export_svg(title=f"proton {' '.join(WORDS)}", unique_id="view")
    lines = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def text_of(svg: str) -> str:
    """Return the text of a picture without spaces, which other versions of rich place otherwise."""
    return "".join(html.unescape("".join(re.findall(r"<text[^>]*>(.*?)</text>", svg))).split())


def keep(recorded: Path) -> None:
    """Keep a profile without the names of the machine and its folders."""
    profile = read_profile(recorded)
    folder = str(profile.provenance["directory"])
    strings = tuple(
        LIBRARIES.sub(r"/usr/lib/\1", text.replace(f"{folder}/", f"{HOME}/"))
        for text in profile.strings
    )
    facts = profile.provenance.updated(directory=HOME, host="", system="Linux", pid=1)
    write_profile(dataclasses.replace(profile, strings=strings, provenance=facts), PROFILE)


if __name__ == "__main__":
    if sys.argv[1:2] == ["keep"]:
        keep(Path(sys.argv[2]))
    PICTURE.write_text(draw(screen()), encoding="utf-8")
