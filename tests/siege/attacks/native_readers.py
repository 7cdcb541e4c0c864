"""Native readers of foreign bytes, under sanitizers, with inputs guided by coverage."""

from __future__ import annotations

import gzip
import os
import shutil
import struct
import subprocess
from pathlib import Path
from random import Random

from siege.attack import Attack, BreachError, Trial
from siege.corpus import DATA, TESTS

# The preset `fuzz` first: it has sanitizers and coverage.
BUILDS = tuple(TESTS.parent / "build" / name for name in ("native-fuzz", "native-asan"))
ROUNDS = 20_000
QUICK_ROUNDS = 300


def readers() -> dict[str, Path]:
    """Return the programs of tests/native/fuzz that are built, by their names."""
    for build in BUILDS:
        found = {file.name: file for file in sorted((build / "tests").glob("read_*"))}
        programs = {name: file for name, file in found.items() if os.access(file, os.X_OK)}
        if programs:
            return programs
    return {}


def section(image: bytes, name: bytes) -> bytes:
    """Return the content of a section of an ELF file of 64 bits."""
    (offset,) = struct.unpack_from("<Q", image, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", image, 0x3A)
    heads = [struct.unpack_from("<IIQQQQ", image, offset + size * each) for each in range(count)]
    texts = heads[names_at][4]
    for head in heads:
        start = texts + head[0]
        if image[start : image.index(b"\0", start)] == name:
            return image[head[4] : head[4] + head[5]]
    return b""


def write_corpora(folder: Path) -> None:
    """Make a folder of whole inputs for each reader."""
    cubin = (DATA / "cupti" / "inlined.cubin").read_bytes()
    layout = struct.pack("<IIII", 40 + 4 * 4 + 4 * 8 * 4, 4, 3, 0)
    block = struct.pack("<IIII", 0xDEADBEEF, 0, 1, 4 * 8 * 4) + bytes(24)
    records = struct.pack("<IIIIIIII", *[0, 5, 1 << 31, 9, 1 << 23, 3, 1 << 31 | 1 << 23, 8])
    buffer = layout + (block + struct.pack("<4I", 8, 8, 4, 0) + records * 4) * 2
    inputs = {
        "read_cubin": [cubin],
        "read_lines": [section(cubin, b".debug_line"), section(cubin, b".nv_debug_line_sass")],
        "read_ptx": [(DATA / "cupti" / "inlined.ptx").read_bytes(), PTX],
        "read_recording": [recording()],
        "read_device_buffer": [
            buffer,
            *(
                layout + gzip.decompress(file.read_bytes())
                for file in DATA.glob("upstream/*.bin.gz")
            ),
        ],
    }
    for name, contents in inputs.items():
        (folder / name).mkdir()
        for number, content in enumerate(contents):
            (folder / name / str(number)).write_bytes(content)


PTX = b""".version 8.7
.visible .entry k()
{
	.loc	1 9 15  // a.py:9:15 @[ a.py:14:14 @[ a.py:22:19 ] ]
	.loc	2 263 15 is_stmt 0 // standard.py:263:15 @[ standard.py:293:36 @[ a.py:23:18 ] ]
}
	.file	1 "/src/a.py"
	.file	2 "/lib/standard.py"
"""


def recording() -> bytes:
    """Return a recorded stream with an event of each kind."""
    texts = [b"scope", b"kernel", b"CUDA", b"lost", b"*fp32"]
    none = 0xFFFFFFFF
    rows = [
        (1, 0, none),
        (3, none, none),
        (4, 1, 2),
        (5, none, none),
        (6, 3, none),
        (2, none, none),
    ]
    events = b"".join(
        struct.pack(
            "<IIIiIIIIQqqQQ6I", kind, name, device, 0, 7, 0, 4, 1, 5, 10, 20, 1, 9, *[1] * 6
        )
        for kind, name, device in rows
    )
    strings = b"".join(struct.pack("<I", len(text)) + text for text in texts)
    return b"PBRECORD" + struct.pack("<IIQ", 1, len(texts), len(rows)) + strings + events


class NativeReaders(Attack):
    """All readers in turn."""

    name = "native"
    about = "changed ELF, line tables, PTX, MessagePack, recorded streams, device buffers: natively"
    share = 4.0

    def prepare(self, folder: Path) -> None:
        """Find the programs and make inputs for them."""
        self._folder = folder
        self._programs = readers()
        if not self._programs:
            raise BreachError(
                "tests/native/fuzz is not built; see the target siege of the Makefile"
            )
        write_corpora(folder)

    def attempt(self, trial: Trial) -> None:
        """Give one reader some thousand inputs."""
        name = trial.dice.choice(list(self._programs))
        self.give(name, trial, ROUNDS if trial.seconds > 1 else QUICK_ROUNDS)

    def give(self, name: str, trial: Trial, rounds: int) -> None:
        """Give a reader inputs; an input that kills it is kept."""
        kept = self._folder / f"{name}-kept"
        kept.mkdir(exist_ok=True)
        trying = trial.folder / "trying"
        seed = _seed(trial.dice)
        words = ["--attempts", str(rounds), "--seed", str(seed), "--kept", str(kept)]
        words += ["--trying", str(trying), str(self._folder / name)]
        with (trial.folder / "said.txt").open("wb") as said:
            done = subprocess.run(
                [self._programs[name], *words], stdout=said, stderr=said, check=False
            )
        trial.count += rounds
        if done.returncode == 0:
            return
        content = trying.read_bytes()
        size = int.from_bytes(content[:8], "little")
        (trial.folder / "input").write_bytes(content[8 : 8 + size])
        trying.unlink()
        shutil.copytree(kept, trial.folder / "kept")
        end = (trial.folder / "said.txt").read_text(errors="replace")[:1500]
        raise BreachError(f"{self._programs[name]} FOLDER/input: code {done.returncode}; {end}")


def _seed(dice: Random) -> int:
    return dice.randrange(1, 2**32)
