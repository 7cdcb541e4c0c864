from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from fakes.outcomes import HOSTILE
from fakes.stored import stored_run

from proton_bench.gate.baselines import BaselineStore
from proton_bench.report.text.baselines import BaselineListing, ListedEntry, baselines_document
from proton_bench.report.text.tree import print_report
from proton_bench.support.console import open_console
from proton_bench.support.text import encode_document


def listed(folder: Path, *, is_promoted: bool = True, **facts: Any) -> ListedEntry:
    entry = BaselineStore(folder).save("main", [stored_run(**facts)])
    return ListedEntry(entry, entry.first_profile(), is_promoted)


def printed(listing: BaselineListing) -> str:
    file = io.StringIO()
    print_report(open_console(file), listing)
    return file.getvalue()


@pytest.mark.parametrize(("is_promoted", "word"), [(True, "baseline "), (False, "candidate")])
def test_an_entry_is_one_line(tmp_path: Path, is_promoted: bool, word: str) -> None:
    each = listed(tmp_path, is_promoted=is_promoted, git={"revision": "0123456789abcdef"})
    saved = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(each.entry.created_ns // 10**9))

    line = printed(BaselineListing([each], {}))

    assert line == (
        f"{each.entry.reference}  {word}  1 run, {saved} UTC, NVIDIA H200, revision 0123456789ab\n"
    )


def test_facts_are_text(tmp_path: Path) -> None:
    each = listed(tmp_path, torch=HOSTILE)
    text = printed(BaselineListing([each], {HOSTILE: HOSTILE}, with_facts=True))

    assert "tool  torch: <script>[/bold]" in text
    assert "\x1b" not in text
    assert not any(line.startswith("::") for line in text.splitlines())


def test_a_device_without_a_name_is_known_by_its_kind(tmp_path: Path) -> None:
    bare = listed(tmp_path, gpus_at_start=[])

    assert "CUDA device architecture 90" in printed(BaselineListing([bare], {}))


def test_document_holds_everything(tmp_path: Path) -> None:
    each = listed(tmp_path, git={"revision": "0123456789abcdef"})
    listing = BaselineListing([each], {"\ud800": "why"})

    document = json.loads(encode_document(baselines_document(listing)))

    (found,) = document["entries"]
    assert found["revision"] == "0123456789abcdef"
    assert found["runs"][0]["bytes"] == each.entry.files()[0].stat().st_size
    assert document["unreadable"] == {"\\ud800": "why"}
