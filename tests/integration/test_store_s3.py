"""A store behind an S3-compatible server has what a store in a folder has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from fakes.object_store import BUCKET, served

from proton_bench.cli import main
from proton_bench.errors import OutputError

pytest.importorskip("deltalake", reason="needs the extra store")
pytest.importorskip("moto", reason="needs the extra test")

WRITERS, COMMITS = 2, 3


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served() as environment, patch.dict(os.environ, environment):
        yield f"s3://{BUCKET}"


def add_runs(store: Any, folder: Path, runs: range) -> None:
    from fakes.fleet import add, ranked

    for run in runs:
        add(store, folder / f"run{run}", *(ranked(rank, [100.0 + run, 200.0]) for rank in range(2)))


def test_answers_and_upkeep_are_those_of_a_folder(url: str, tmp_path: Path) -> None:
    from proton_bench.store.questions import Question, path_series
    from proton_bench.store.store import Store
    from proton_bench.store.upkeep import check, compact

    stores = [Store.create(f"{url}/same"), Store.create(tmp_path / "same")]
    for store in stores:
        add_runs(store, tmp_path / store.uri[:2], range(2))
    answers = [path_series(store.snapshot(), Question("fwd/*")) for store in stores]
    done = [compact(store) for store in stores]

    assert answers[0].equals(answers[1])
    assert done[0] == done[1]
    assert path_series(stores[0].snapshot(), Question("fwd/*")).equals(answers[0])
    assert check(stores[0]) == {}


def test_writers_at_once_lose_nothing(url: str, tmp_path: Path) -> None:
    from proton_bench.store.store import Store

    store = Store.create(f"{url}/shared")
    with ProcessPoolExecutor(WRITERS, get_context("spawn")) as pool:
        chosen = [range(COMMITS * writer, COMMITS * (writer + 1)) for writer in range(WRITERS)]
        list(pool.map(add_runs, [store] * WRITERS, [tmp_path] * WRITERS, chosen))

    runs = store.snapshot().profiles()["run"].to_pylist()
    assert sorted(runs) == sorted(2 * [f"run{run}" for run in range(WRITERS * COMMITS)])
    assert store.table("profiles").version() == WRITERS * COMMITS


def test_commands_take_urls(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from proton_bench.store.store import Store

    assert main(["store", "init", f"{url}/named"]) == 0
    add_runs(Store.open(f"{url}/named"), tmp_path, range(1))
    assert main(["store", "path", f"{url}/named", "**", "--by", "path", "--json"]) == 0
    assert "fwd/softmax" in capsys.readouterr().out
    assert main(["store", "ls", f"{url}/nowhere"]) == 2


def test_a_bucket_that_is_missing_is_an_error_of_output(url: str) -> None:
    from proton_bench.store.store import Store

    with pytest.raises(OutputError, match="cannot create"):
        Store.create(f"{url}s/store")


def test_rejected_credentials_are_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place = f"s3://{BUCKET}/store"
    with served(is_open=False) as environment, patch.dict(os.environ, environment):
        for words, code in (
            (["init", place], 74),
            (["ls", place], 2),
            (["path", place, "fwd"], 2),
            (["add", place, str(tmp_path)], 2),
            (["maintain", place], 2),
        ):
            assert main(["store", *words]) == code
            out, err = capfd.readouterr()
            assert (out, err.count("\n")) == ("", 1)
            assert "403 Forbidden" in err
            assert ("AWS_ACCESS_KEY_ID" in err) == (code == 2)
