from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.outcomes import HOSTILE
from fakes.stored import stored_run

from proton_bench.gate.baseline.entry import Entry
from proton_bench.gate.baseline.store import BaselineStore
from proton_bench.report.json.tree import encode_document
from proton_bench.report.text.baselines import BaselineListing, ListedEntry, baselines_document
from proton_bench.report.tree.tree import print_report
from proton_bench.support.console import open_console


@pytest.fixture
def entry(tmp_path: Path) -> Entry:
    run = stored_run(source=HOSTILE, git={"revision": "0123456789abcdef"}, torch=HOSTILE)
    return BaselineStore(tmp_path).save("main", [run])


def printed(listing: BaselineListing) -> str:
    file = io.StringIO()
    print_report(open_console(file), listing)
    return file.getvalue()


@pytest.mark.parametrize(("is_promoted", "word"), [(True, "baseline "), (False, "candidate")])
def test_an_entry_is_one_line(entry: Entry, is_promoted: bool, word: str) -> None:
    entry = replace(entry, created_ns=1_700_000_000_000_000_000)

    line = printed(BaselineListing([ListedEntry(entry, is_promoted)], {}))

    assert line == (
        f"{entry.reference}  {word}  1 run, 2023-11-14 22:13:20 UTC, NVIDIA H200, "
        "revision 0123456789ab\n"
    )


def test_facts_and_files_are_text(entry: Entry) -> None:
    text = printed(
        BaselineListing([ListedEntry(entry, is_promoted=True)], {HOSTILE: HOSTILE}, with_facts=True)
    )

    assert "tool  torch: <script>[/bold]" in text
    assert "was <script>[/bold]" in text
    assert "\x1b" not in text
    assert not any(line.startswith("::") for line in text.splitlines())


def test_sizes_of_the_runs_of_an_entry_have_one_unit(entry: Entry) -> None:
    (run,) = entry.runs
    entry = replace(entry, runs=tuple(replace(run, size=size) for size in (900, 2048)))

    text = printed(BaselineListing([ListedEntry(entry, is_promoted=True)], {}, with_facts=True))

    assert "  0.8789 KiB, was" in text
    assert "  2 KiB, was" in text


def test_a_device_without_a_name_is_known_by_its_kind(entry: Entry) -> None:
    bare = replace(
        entry, key=replace(entry.key, facts=tuple(f for f in entry.key.facts if "GPU" not in f[1]))
    )

    assert "CUDA device architecture 90" in printed(
        BaselineListing([ListedEntry(bare, is_promoted=True)], {})
    )


def test_document_holds_everything(entry: Entry) -> None:
    listing = BaselineListing([ListedEntry(entry, is_promoted=True)], {"\ud800": "why"})

    document = json.loads(encode_document(baselines_document(listing)))

    (found,) = document["entries"]
    assert found["revision"] == "0123456789abcdef"
    assert found["runs"][0]["bytes"] == entry.runs[0].size
    assert document["unreadable"] == {"\\ud800": "why"}
