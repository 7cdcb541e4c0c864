"""Small files that would decode to a lot: every command refuses or reads them fast.

Each command runs in its own child, with limits on processor time and memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from fakes.hostile import FILES, nested, traced
from fuzz.bounded import bounded

SECONDS = 40  # four times the limit for files of a few MB

# All commands read alike; readable files are also tried with the other options.
READABLE = ("deep_tree.hatchet", "lines_in_lines.hatchet", "mangled_names.hatchet")
CASES = [
    *(("view", name) for name in FILES),
    *((command, name) for command in ("merge", "gate", "report", "diff") for name in READABLE),
]


@cache
def content_of(name: str) -> bytes:
    return FILES[name]()


def run(folder: Path, *words: object) -> tuple[int, str]:
    """Run a command in a bounded child; return its exit code, and what it wrote to stderr."""
    ended = bounded(folder, words, SECONDS)
    return ended.code, ended.stderr


def words_of(command: str, file: str) -> list[str]:
    other = f"b{file}"
    return {
        "view": ["view", file],
        "merge": ["merge", file, other, "-o", "out.proton"],
        "gate": ["gate", file, other],
        "report": ["report", file, "-o", "out.html"],
        "diff": ["diff", file, other],
    }[command]


def check_cheap(folder: Path, words: Sequence[str]) -> None:
    code, text = run(folder, *words)

    assert code in (0, 1, 2, 3, 4), (words, code, text[-1000:])
    assert "Traceback" not in text
    assert code != 2 or len(text.splitlines()) == 1


@pytest.mark.nightly(keep=6)
@pytest.mark.parametrize(("command", "name"), CASES)
def test_small_files_cost_little(tmp_path: Path, name: str, command: str) -> None:
    (tmp_path / name).write_bytes(content_of(name))

    if command in ("merge", "gate", "diff"):
        # The other side launches each kernel twice.
        other = content_of(name).replace(b'{"time (ns)": 1}', b'{"time (ns)": 1, "count": 2}')
        (tmp_path / f"b{name}").write_bytes(other)

    check_cheap(tmp_path, words_of(command, name))


@pytest.mark.parametrize(
    ("option", "expression"),
    [
        ("-i", "(a+)+$"),
        ("-e", "(.*.*.*.*)="),
        ("-i", "(a{0,999}){0,999}b"),
        ("-e", "(" * 9000),
    ],
)
def test_expressions_do_not_search_without_end(
    tmp_path: Path, option: str, expression: str
) -> None:
    (tmp_path / "a.hatchet").write_bytes(nested(3, "a" * 5000))

    check_cheap(tmp_path, ["view", "a.hatchet", option, expression])


def test_a_limit_is_named_and_can_be_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = b'{"ph":"X","cat":"cpu_op","name":"n","pid":1,"tid":1,"ts":1,"dur":2}'
    spread = (event + b"," + b" " * (1 << 20)) * 300 + event + b"]}"
    (tmp_path / "a.json.gz").write_bytes(traced(spread))

    code, text = run(tmp_path, "view", "a.json.gz")
    assert code == 2
    assert "PROTON_BENCH_DECODE_LIMIT" in text
    monkeypatch.setenv("PROTON_BENCH_DECODE_LIMIT", "20")
    assert run(tmp_path, "view", "a.json.gz")[0] == 0
    monkeypatch.setenv("PROTON_BENCH_DECODE_LIMIT", "much")
    code, text = run(tmp_path, "view", "a.json.gz")
    assert code == 2
    assert len(text.splitlines()) == 1


@pytest.mark.parametrize(
    "policy", ["share = " + "[" * 20_000, "a." * 100_000 + "a = 1", "share = " + "1" * 5_000_000]
)
def test_policies_without_end_are_refused(tmp_path: Path, policy: str) -> None:
    for name in ("a.hatchet", "b.hatchet"):
        (tmp_path / name).write_bytes(nested(3))
    (tmp_path / "long").write_text(policy)

    code, text = run(tmp_path, "gate", "a.hatchet", "b.hatchet", "--policy", "long")

    assert code == 2
    assert len(text.splitlines()) == 1


@pytest.mark.parametrize("stars", ["*" * 5000, "*a" * 2500, "*?" * 2500 + "x"])
def test_selectors_do_not_search_without_end(tmp_path: Path, stars: str) -> None:
    for name in ("a.hatchet", "b.hatchet"):
        (tmp_path / name).write_bytes(nested(3, "a" * 5000))

    code, text = run(
        tmp_path, "gate", "a.hatchet", "b.hatchet", "--threshold", f"{stars}@median > 5%"
    )

    assert code in (0, 1, 2, 3), (code, text[-300:])
