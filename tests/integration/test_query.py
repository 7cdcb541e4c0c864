"""``proton query`` from the command line."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import pytest
from fakes.profiles import training_profile
from published import published

from proton_bench.cli import main
from proton_bench.formats.registry import write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.metrics.distribution import Distribution

UPSTREAM = Path(__file__).parents[1] / "data" / "upstream"
Capture = pytest.CaptureFixture[bytes]


@pytest.fixture
def training(tmp_path: Path) -> str:
    path = tmp_path / "x.proton"
    write_profile(training_profile(), path)
    return str(path)


@pytest.fixture
def sql() -> None:
    pytest.importorskip("duckdb", reason="needs the extra store")


def printed(capture: Capture, *words: str) -> str:
    assert main(["query", *words]) == 0
    found = capture.readouterr()
    assert found.err == b""
    return found.out.decode()


def refused(capture: Capture, *words: str, code: int = 2) -> str:
    assert main(["query", *words]) == code
    found = capture.readouterr()
    assert found.out == b""
    (line,) = found.err.decode().splitlines()
    assert line.startswith("proton: error: ")
    return line


@pytest.mark.usefixtures("sql")
def test_quantiles_of_calls_can_be_asked_for(capsysbinary: Capture, tmp_path: Path) -> None:
    builder = ProfileBuilder()
    row = builder.add(0, "k", metrics={"time (ns)": 10})
    builder.set_distribution(row, "time (ns)", Distribution.from_samples([1, 2, 3, 4]))
    write_profile(builder.build(), tmp_path / "x.proton")
    query = "SELECT n.name, median, p95 FROM distributions d JOIN nodes n USING (run, node)"

    text = printed(capsysbinary, str(tmp_path / "x.proton"), query, "--csv")

    assert text.splitlines() == ["name,median,p95", "k,2.5,3.8499999999999996"]


@pytest.mark.usefixtures("sql")
def test_table_is_the_default(capsysbinary: Capture, training: str) -> None:
    text = printed(capsysbinary, training, "SELECT run, name FROM nodes WHERE depth < 2")

    assert text.splitlines() == ["run  name", "x    ROOT", "x    test_step", "(2 lines)"]


@pytest.mark.usefixtures("sql")
def test_json(capsysbinary: Capture, training: str) -> None:
    found = published(printed(capsysbinary, training, "SELECT max(depth) d FROM nodes", "--json"))

    assert found["schema"] == "proton_bench.query"
    assert (found["columns"], found["rows"]) == ([{"name": "d", "type": "BIGINT"}], [[4]])


@pytest.mark.usefixtures("sql")
def test_csv(capsysbinary: Capture, training: str) -> None:
    text = printed(capsysbinary, training, "SELECT name, kind FROM nodes", "--csv")

    assert list(csv.reader(io.StringIO(text)))[:2] == [["name", "kind"], ["ROOT", "root"]]


@pytest.mark.usefixtures("sql")
def test_a_table_is_cut_and_other_forms_are_whole(capsysbinary: Capture, training: str) -> None:
    query = "SELECT * FROM range(2000)"

    assert len(printed(capsysbinary, training, query).splitlines()) < 1010
    assert len(published(printed(capsysbinary, training, query, "--json"))["rows"]) == 2000
    assert len(printed(capsysbinary, training, query, "--csv").splitlines()) == 2001


@pytest.mark.usefixtures("sql")
def test_files_of_upstream_stand_beside_ours(capsysbinary: Capture, training: str) -> None:
    other = str(UPSTREAM / "eager-tree.hatchet")
    query = 'SELECT run, "time (ns) (inc)" AS t FROM nodes WHERE node = 0 ORDER BY run'

    found = published(printed(capsysbinary, training, other, query, "--json"))

    assert found["rows"] == [["eager-tree", 4_323_198], ["x", 4_000_000]]


@pytest.mark.usefixtures("sql")
def test_empty_profile_is_a_warning(capsysbinary: Capture, tmp_path: Path) -> None:
    path = tmp_path / "empty.proton"
    write_profile(ProfileBuilder().build(), path)

    assert main(["query", str(path), "SELECT count(*) FROM nodes"]) == 0
    assert b"is empty" in capsysbinary.readouterr().err


@pytest.mark.usefixtures("sql")
def test_malformed_sql_is_one_line(capsysbinary: Capture, training: str) -> None:
    assert "syntax error" in refused(capsysbinary, training, "SELEC 1")


def test_wrong_usage_is_named(capsysbinary: Capture, training: str) -> None:
    assert "SQL statement" in refused(capsysbinary, training)
    assert "SQL" in refused(capsysbinary, training, training)
    assert "exclude each other" in refused(capsysbinary, training, "SELECT 1", "--json", "--csv")
    assert "Missing argument" in refused(capsysbinary)
    assert "nope.proton" in refused(capsysbinary, "nope.proton", "SELECT 1")


def test_missing_extras_are_named(
    capsysbinary: Capture, training: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.setitem(sys.modules, "hatchet", None)

    line = refused(capsysbinary, training, "SELECT 1", code=69)
    assert "pip install duckdb" in line
    line = refused(capsysbinary, training, "--hatchet", 'MATCH ("*", p)', code=69)
    assert "pip install llnl-hatchet" in line


def test_hatchet_dialect(capsysbinary: Capture, training: str) -> None:
    pytest.importorskip("hatchet", reason="needs the extra hatchet")
    query = 'MATCH (".", p) WHERE p."name" =~ "kernel_3"'

    found = published(printed(capsysbinary, training, "--hatchet", query, "--json"))

    assert [row[:3] for row in found["rows"]] == [["x", 4, "kernel_3"]] * 2
    assert "Expected 'MATCH'" in refused(capsysbinary, training, "--hatchet", "SELECT 1")
