"""Draws the pictures of README.md and of the tutorials: screens of proton in a terminal.

python docs/pictures/picture.py                   # draw them again from the kept profiles
python docs/pictures/picture.py keep FILE KEPT    # first keep FILE as the profile KEPT

The profiles were recorded on a CPU, with the programs of README.md and the tutorials.
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

from proton_bench.formats.registry import find_format, read_profile, write_profile
from proton_bench.model.profile import Profile

__all__ = ["FOLDER", "PICTURES", "screen", "text_of"]

FOLDER = Path(__file__).parent
# The command that each shows, by the name of its file.
PICTURES = {
    "view": ("view", "train.proton"),
    "first_profile": ("view", "network.proton"),
    "why_is_it_slow": ("why", "slow.proton"),
}
COLUMNS, LINES = 100, 28
# The folder that the kept profile names in place of the one it was recorded in.
HOME = "/home/you"
LIBRARIES = re.compile(r"/[^@]*/((?:site-packages|python3\.\d+)/)")


def screen(words: tuple[str, ...]) -> str:
    """Return what a command shows in a terminal, with its escape sequences."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    settings = {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(LINES)}
    unset = ("NO_COLOR", "FORCE_COLOR")
    known = {name: value for name, value in os.environ.items() if name not in unset}
    process = subprocess.Popen(
        [sys.executable, "-m", "proton_bench", *words],
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


def draw(words: tuple[str, ...]) -> str:
    """Return the screen of a command as SVG that loads no fonts."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), legacy_windows=False)
    console.print(Text.from_ansi(screen(words)), soft_wrap=True)
    svg = console.export_svg(title=f"proton {' '.join(words)}", unique_id="view")
    lines = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def text_of(svg: str) -> str:
    """Return the text of a picture without spaces, which other versions of rich place otherwise."""
    return "".join(html.unescape("".join(re.findall(r"<text[^>]*>(.*?)</text>", svg))).split())


def keep(recorded: Path, kept: Path) -> None:
    """Keep a profile without the names of the machine and its folders."""
    profile = read_profile(recorded)
    if profile.steady:
        native = find_format("proton")
        steady = native.encode(_anonymous(native.decode(profile.steady, str(recorded))))
        profile = dataclasses.replace(profile, steady=steady)
    write_profile(_anonymous(profile), kept)


def _anonymous(profile: Profile) -> Profile:
    folder = str(profile.provenance["directory"])
    strings = tuple(
        LIBRARIES.sub(r"/usr/lib/\1", text.replace(f"{folder}/", f"{HOME}/"))
        for text in profile.strings
    )
    facts = profile.provenance.updated(directory=HOME, host="", system="Linux", pid=1)
    return dataclasses.replace(profile, strings=strings, provenance=facts)


if __name__ == "__main__":
    if sys.argv[1:2] == ["keep"]:
        keep(Path(sys.argv[2]), FOLDER / sys.argv[3])
    for name, words in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw(words), encoding="utf-8")
