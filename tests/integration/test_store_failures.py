"""What goes wrong with a store is one line and an exit code, and Ctrl-C ends every command."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from proton_bench.cli import main

pytest.importorskip("deltalake", reason="needs the extra store")

HOURS_OF_ROWS = "SELECT sum(a.range * b.range) FROM range(1000000) a, range(10000) b"


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A store with a run of two ranks."""
    from fakes.fleet import add, ranked

    from proton_bench.store.store import Store

    store = Store.create(tmp_path / "fleet")
    add(store, tmp_path / "runs/run0", ranked(0), ranked(1))
    return tmp_path / "fleet"


def started(*words: object, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "proton_bench", *map(str, words)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


# -- Ctrl-C --------------------------------------------------------------------------------------
@pytest.mark.parametrize("command", [["store", "ls"], ["diff", "s3://fleet/x?rank = 0"]])
def test_ctrl_c_ends_waiting_for_a_server(command: Sequence[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        process = started(
            *command,
            "s3://fleet/x",
            AWS_ENDPOINT_URL=f"http://127.0.0.1:{server.getsockname()[1]}",
            AWS_ALLOW_HTTP="true",
            AWS_REGION="nowhere",
            AWS_ACCESS_KEY_ID="anyone",
            AWS_SECRET_ACCESS_KEY="anything",
        )
        connection, _ = server.accept()
        with connection:
            process.send_signal(signal.SIGINT)
            assert process.communicate() == ("", "")

    assert process.returncode == 130


def test_a_watch_adds_files_once_until_ctrl_c(fleet: Path, tmp_path: Path) -> None:
    program = (
        "import sys; from proton_bench.cli import main; "
        "from proton_bench.cli.commands import store; store._WATCH_INTERVAL_S = 0.1; "
        "sys.exit(main(sys.argv[1:]))"
    )
    words = ["store", "watch", fleet, tmp_path / "runs", "--job", "w"]
    process = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None

    assert process.stdout.readline() == "added 2 profiles\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate() == ("", "")

    assert process.returncode == 130


@pytest.mark.parametrize(
    "ask",
    [
        lambda connection: connection.sql(HOURS_OF_ROWS).to_arrow_table(),
        lambda connection: connection.execute(HOURS_OF_ROWS).fetchall(),
        lambda connection: connection.execute(f"CREATE TEMP TABLE found AS {HOURS_OF_ROWS}"),
    ],
    ids=["sql", "execute", "create"],
)
def test_ctrl_c_ends_a_statement(ask: Callable[[Any], Any]) -> None:
    from proton_bench.store.engines import open_memory

    def asked() -> None:
        with open_memory() as connection:
            threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT]).start()
            ask(connection)

    before = signal.set_wakeup_fd(-1)
    with pytest.raises(KeyboardInterrupt):
        asked()
    assert signal.set_wakeup_fd(before) == -1


def test_readers_of_files_do_not_see_ctrl_c(tmp_path: Path, fleet: Path) -> None:
    from proton_bench.store.adding.ingest import _mapping

    with _mapping(2) as mapped:
        masks = list(mapped(blocked, range(2)))

    assert masks == [True, True]
    assert not blocked(0)


def blocked(_: int) -> bool:
    """Return whether this process is out of reach of Ctrl-C."""
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


# -- places that cannot be written ---------------------------------------------------------------
@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own."""
    place = tmp_path / "mounted"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if not shutil.which("mount") or subprocess.run(words, capture_output=True).returncode:
        pytest.skip("needs to mount")
    yield place
    subprocess.run(["umount", place], check=True)


def fill(place: Path) -> None:
    with (place / "fill").open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass


def protect(place: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", place], check=True)


@pytest.mark.parametrize("spoil", [fill, protect])
def test_full_disks_and_read_only_folders_are_one_line(
    mounted: Path, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    from fakes.fleet import add, ranked

    from proton_bench.store.store import Store
    from proton_bench.store.upkeep import check

    store = Store.create(mounted / "fleet")
    add(store, tmp_path / "runs/run0", ranked(0))
    spoil(mounted)

    process = started("store", "add", store.uri, tmp_path / "runs", "--job", "other")
    out, err = process.communicate()

    assert (process.returncode, out) == (74, "")
    assert err.startswith("proton: error: cannot add to the table samples")
    assert err.count("\n") == 1
    assert check(store) == {}


# -- damage --------------------------------------------------------------------------------------
def without_samples(fleet: Path) -> None:
    next((fleet / "samples").rglob("*.parquet")).unlink()


def cut_samples(fleet: Path) -> None:
    os.truncate(next((fleet / "samples").rglob("*.parquet")), 100)


def without_stacks(fleet: Path) -> None:
    shutil.rmtree(fleet / "stacks")


def broken_log(fleet: Path) -> None:
    with (fleet / "profiles/_delta_log/00000000000000000001.json").open("a") as log:
        log.write('{"nope')


def gap_in_log(fleet: Path) -> None:
    (fleet / "samples/_delta_log/00000000000000000000.json").unlink()


def newer_version(fleet: Path) -> None:
    for log in fleet.glob("*/_delta_log/*.json"):
        log.write_text(log.read_text().replace("proton_bench store 1.0", "proton_bench store 2.0"))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (without_samples, "is missing"),
        (cut_samples, "is damaged"),
        (without_stacks, "table stacks is missing"),
        (broken_log, "table profiles"),
        (gap_in_log, "table samples"),
        (newer_version, "version 1"),
    ],
)
def test_damage_is_one_line(
    fleet: Path,
    capfd: pytest.CaptureFixture[str],
    damage: Callable[[Path], None],
    message: str,
) -> None:
    damage(fleet)
    sql = "SELECT sum(value) FROM samples"

    for words in (["path", fleet, "fwd"], ["query", fleet, sql]):
        code = main(["store", *map(str, words)])
        out, err = capfd.readouterr()
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert message in err


def with_checkpoints(fleet: Path) -> Path:
    """Give each table a checkpoint, and the table profiles none of the commits before; its log."""
    from proton_bench.store.schema import TABLES
    from proton_bench.store.store import Store

    for table in TABLES:
        Store.open(fleet).table(table).create_checkpoint()
    log = fleet / "profiles/_delta_log"
    for commit in log.glob("*.json"):
        commit.unlink()
    return log


def without_checkpoint(log: Path) -> None:
    next(log.glob("*.checkpoint.parquet")).unlink()


def cut_checkpoint(log: Path) -> None:
    os.truncate(next(log.glob("*.checkpoint.parquet")), 100)


def hint_beyond(log: Path) -> None:
    (log / "_last_checkpoint").write_text('{"version":77,"size":3}')


@pytest.mark.parametrize("damage", [without_checkpoint, cut_checkpoint, hint_beyond])
def test_a_lost_checkpoint_is_one_line_that_says_what_to_do(
    fleet: Path, capfd: pytest.CaptureFixture[str], damage: Callable[[Path], None]
) -> None:
    damage(with_checkpoints(fleet))

    for words in (["ls", fleet], ["path", fleet, "fwd"], ["maintain", fleet]):
        code = main(["store", *map(str, words)])
        out, err = capfd.readouterr()
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "table profiles" in err
        assert "copy its _delta_log back" in err


@pytest.mark.parametrize("hint", [None, '{"nope'])
def test_a_checkpoint_is_found_without_the_file_that_names_it(
    fleet: Path, capfd: pytest.CaptureFixture[str], hint: str | None
) -> None:
    name = with_checkpoints(fleet) / "_last_checkpoint"
    name.unlink()
    if hint is not None:
        name.write_text(hint)

    assert main(["store", "query", str(fleet), "SELECT count(*) AS n FROM profiles", "--csv"]) == 0
    assert capfd.readouterr().out == "n\n2\n"


@pytest.mark.parametrize("damage", [without_stacks, newer_version])
def test_a_damaged_store_is_not_made_anew(fleet: Path, damage: Callable[[Path], None]) -> None:
    damage(fleet)

    assert main(["store", "init", str(fleet)]) == 2


def test_the_name_that_tables_use_for_none_is_refused() -> None:
    from proton_bench.errors import UsageError
    from proton_bench.store.adding.ingest import Labels

    with pytest.raises(UsageError, match="for tables it means none"):
        Labels("__HIVE_DEFAULT_PARTITION__")
