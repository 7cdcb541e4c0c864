from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.fleet import add, ranked

from proton_bench.errors import UsageError
from proton_bench.store.policy.policy import POLICY_FILE
from proton_bench.store.policy.privacy import KEY_VARIABLE
from proton_bench.store.questions import Question, path_series
from proton_bench.store.schema import TABLES
from proton_bench.store.store import Store

SECRETS = {"names": "softmax", "commands": "secret_model.py", "hosts": "node17"}
FACTS: dict[str, Any] = {
    "host": "node17",
    "command": ["python", "secret_model.py"],
    "environment": {"MODEL": "secret_model.py"},
    "git": {"revision": "abc", "dirty": False},
    "gpus_at_start": [{"name": "H200", "uuid": "GPU-node17", "driver": "570"}],
}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "a key that is long enough")


def values(value: Any) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for each in value:
            yield from values(each)
    elif isinstance(value, dict):
        yield from values(list(value.items()))
    else:
        yield str(value)


def stored_text(store: Store) -> str:
    """Return all that the tables have."""
    snapshot = store.snapshot()
    with snapshot.connect() as reader:
        tables = [reader.table(f"FROM stored_{table}") for table in TABLES]
    return " ".join(text for table in tables for text in values(table.to_pylist()))


def filled(store: Store, folder: Path, policy: str) -> Store:
    Path(store.uri, POLICY_FILE).write_text(policy)
    added = add(store, folder / "run", *(ranked(rank, **FACTS) for rank in range(2)))
    assert (len(added.new), added.failed) == (2, {})
    return store


def test_without_a_policy_everything_is_stored(store: Store, tmp_path: Path) -> None:
    text = stored_text(filled(store, tmp_path, ""))

    assert all(secret in text for secret in SECRETS.values())


@pytest.mark.parametrize("way", ["hash", "drop"])
@pytest.mark.parametrize("kind", SECRETS)
def test_what_the_policy_names_is_not_stored(
    store: Store, tmp_path: Path, kind: str, way: str
) -> None:
    text = stored_text(filled(store, tmp_path, f'{way} = ["{kind}"]'))

    assert {name for name, secret in SECRETS.items() if secret not in text} == {kind}
    assert {"abc", "H200", "570"} <= set(text.replace('"', " ").replace(",", " ").split())


def test_files_are_named_by_nothing_that_leads_to_people(store: Store, tmp_path: Path) -> None:
    assert tmp_path.name not in stored_text(filled(store, tmp_path, 'drop = ["commands"]'))


def test_numbers_do_not_change(store: Store, tmp_path: Path) -> None:
    filled(store, tmp_path, 'hash = ["names", "commands", "hosts"]')
    table = path_series(store.snapshot(), Question("**", by=("path", "rank"))).to_pylist()

    sums = sorted(row["total"] for row in table if row["path"].count("/") == 1)
    assert sums == [300.0, 300.0, 3000.0, 3000.0]


def test_hashed_hosts_stay_distinct_and_equal(store: Store, tmp_path: Path) -> None:
    Path(store.uri, POLICY_FILE).write_text('hash = ["hosts"]')
    add(store, tmp_path / "run", *(ranked(k, host=f"node{k % 2}") for k in range(4)))

    hosts = store.snapshot().profiles()["host"].to_pylist()
    assert hosts[:2] == hosts[2:]
    assert len(set(hosts)) == 2


def test_an_unknown_host_has_no_hash(store: Store, tmp_path: Path) -> None:
    Path(store.uri, POLICY_FILE).write_text('hash = ["hosts"]')
    add(store, tmp_path / "run", ranked(0, host=""))

    assert store.snapshot().profiles()["host"].to_pylist() == [None]


def test_another_key_gives_another_hash(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(store, tmp_path, 'hash = ["hosts"]')
    monkeypatch.setenv(KEY_VARIABLE, "another key that is long enough")
    add(store, tmp_path / "later", ranked(5, **FACTS))

    assert len(set(store.snapshot().profiles()["host"].to_pylist())) == 2


@pytest.mark.parametrize("secret", ["", "short"])
def test_nothing_is_added_without_a_key(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, secret)
    Path(store.uri, POLICY_FILE).write_text('hash = ["hosts"]')

    with pytest.raises(UsageError, match=KEY_VARIABLE):
        add(store, tmp_path / "run", ranked(0))
    assert len(store.snapshot().profiles()) == 0
