"""``proton store`` from its first command to its last."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.stored import put, stored_run

from proton_bench.cli import main
from proton_bench.formats.registry import read_profile

pytest.importorskip("deltalake", reason="needs the extra store")

Proton = Callable[..., tuple[int, str, str]]


@pytest.fixture
def proton(capsys: pytest.CaptureFixture[str]) -> Proton:
    """Return a function that runs a command line and returns its exit code and both outputs."""

    def run(*words: object) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def fleet(tmp_path: Path, proton: Proton) -> Path:
    """A store with two runs of a job, of two ranks each."""
    for run in range(2):
        ranks = [stored_run(100.0 + run, rank=rank, start_time_ns=10**18 + run) for rank in (0, 1)]
        put(tmp_path / f"runs/run{run}", *ranks)
    assert proton("store", "init", tmp_path / "fleet")[0] == 0
    assert proton("store", "add", tmp_path / "fleet", tmp_path / "runs", "--job", "train")[0] == 0
    return tmp_path / "fleet"


def test_runs_are_listed(fleet: Path, proton: Proton) -> None:
    code, out, _ = proton("store", "ls", fleet, "--json")
    document = json.loads(out)

    assert code == 0
    names = [column["name"] for column in document["columns"]]
    rows = [dict(zip(names, row, strict=True)) for row in document["rows"]]
    assert [(row["job"], row["run"], row["profiles"]) for row in rows] == [
        ("train", "run0", 2),
        ("train", "run1", 2),
    ]
    _, out, _ = proton("store", "ls", f"{fleet}?run = 'run1'", "--json")
    assert len(json.loads(out)["rows"]) == 1


def test_adding_again_says_so_and_files_that_cannot_be_read_are_named(
    fleet: Path, tmp_path: Path, proton: Proton
) -> None:
    (tmp_path / "broken.proton").write_bytes(b"\x88")

    again = proton("store", "add", fleet, tmp_path / "runs", "--job", "train")
    code, out, err = proton("store", "add", fleet, tmp_path / "broken.proton", "--job", "train")

    assert (again[0], again[1]) == (0, "added 0 profiles; 4 were there already\n")
    assert (code, out) == (2, "added 0 profiles\n")
    assert "broken.proton" in err


def test_sql_sees_tables_of_the_store_and_of_single_profiles(fleet: Path, proton: Proton) -> None:
    sql = "SELECT count(*) FROM samples WHERE value IS NOT NULL"
    _, out, _ = proton("store", "query", fleet, sql, "--csv")
    assert out.splitlines()[1] == "4"

    sql = (
        'SELECT p.run, sum(n."time (ns)") FROM nodes n JOIN profiles p ON n.run = p.profile_id '
        "GROUP BY ALL ORDER BY ALL"
    )
    _, out, _ = proton("store", "query", f"{fleet}?rank = 0", sql, "--csv")
    assert out.splitlines()[1:] == ["run0,303.0", "run1,306.0"]


@pytest.mark.parametrize("sql", ["SELECT * FROM profile", "SELECT 1; SELECT 2"])
def test_errors_of_queries_name_all_tables(fleet: Path, proton: Proton, sql: str) -> None:
    code, _, err = proton("store", "query", fleet, sql)

    assert code == 2
    assert "tables are samples, stacks, timelines, profiles, runs, nodes" in err


def test_proton_query_reads_a_store_like_files(fleet: Path, tmp_path: Path, proton: Proton) -> None:
    sql = 'SELECT name, count(*), sum("time (ns)") FROM nodes GROUP BY ALL ORDER BY ALL'
    files = sorted((tmp_path / "runs").rglob("*.proton"))

    assert proton("query", fleet, sql, "--csv") == proton("query", *files, sql, "--csv")


@pytest.mark.parametrize(("policy", "kept"), [("", True), ("rank_days = 5\nraw_days = 2", False)])
def test_maintenance_keeps_what_the_policy_says(
    fleet: Path, proton: Proton, policy: str, kept: bool
) -> None:
    (fleet / "policy.toml").write_text(policy)
    times = "SELECT sum(totals['time (ns)']) AS ns FROM profiles"
    ranks = "SELECT count(rank) > 0 AS kept FROM profiles"
    before = proton("store", "query", fleet, times, "--csv")

    assert [proton("store", "maintain", fleet)[0] for _ in range(2)] == [0, 0]

    assert proton("store", "query", fleet, times, "--csv") == before
    assert proton("store", "query", fleet, ranks, "--csv")[1] == f"kept\n{str(kept).lower()}\n"


def test_a_damaged_store_is_named_and_stays_as_it_is(fleet: Path, proton: Proton) -> None:
    next((fleet / "samples").rglob("*.parquet")).unlink()
    for file in (fleet / "profiles").rglob("*.parquet"):
        file.unlink()
    before = sorted(fleet.rglob("*"))

    code, out, _ = proton("store", "maintain", fleet)

    assert code == 2
    assert "DAMAGED profiles/" in out
    assert sorted(fleet.rglob("*")) == before


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["ls", "nowhere"],
        ["ls", "{fleet}?nope"],
        ["query", "{fleet}", "DROP TABLE profiles"],
        ["query", "{fleet}", "SELECT * FROM '/etc/passwd'"],
        ["query", "{fleet}?nope", "SELECT * FROM nodes"],
        ["query", "{fleet}?rank = 0", "SELECT * FROM profiles"],
        ["add", "{fleet}", ".", "--job", ""],
        ["add", "nowhere", "."],
        ["watch", "{fleet}", "nowhere"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_line_with_exit_code_2(
    fleet: Path, proton: Proton, words: list[str]
) -> None:
    code, out, err = proton("store", *(word.format(fleet=fleet) for word in words))

    assert (code, out) == (2, "")
    assert err.startswith("proton: error: ")
    assert err.count("\n") == 1
    assert r"\n" not in err


PROGRAM = """
import sys
import proton_bench as proton
with proton.scope("work"):
    pass
sys.exit(int(sys.argv[1]))
"""


def recorded(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a program into the store of a folder."""
    (folder / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "proton_bench", "run", *map(str, words), "program.py", "3"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_a_run_is_recorded_into_a_store(fleet: Path, tmp_path: Path, proton: Proton) -> None:
    done = recorded(tmp_path, "--store", fleet, "--job", "bench")

    assert (done.returncode, done.stderr) == (3, "proton: added 1 profile to the store\n")
    sql = "SELECT name FROM nodes WHERE kind = 'scope'"
    _, out, _ = proton("store", "query", f"{fleet}?job = 'bench'", sql, "--csv")
    assert out.splitlines() == ["name", "work"]
    assert not list(tmp_path.glob("*.proton"))


def test_a_run_without_a_store_does_not_begin(fleet: Path, tmp_path: Path) -> None:
    for words in (["--store", tmp_path / "x"], ["--store", fleet, "-n", "x"]):
        done = recorded(tmp_path, *words)
        assert (done.returncode, done.stdout) == (2, "")


def test_files_of_a_run_that_cannot_be_added_are_kept(
    fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    shutil.rmtree(fleet / "samples")

    done = recorded(tmp_path, "--store", fleet)

    assert done.returncode == 2
    (file,) = tmp_path.glob("20*/run.proton")
    assert str(file.parent) in done.stderr


def test_a_test_run_is_added_to_a_store(
    fleet: Path, tmp_path: Path, proton: Proton, child_options: str
) -> None:
    (tmp_path / "test_work.py").write_text("def test_work():\n    pass\n")
    words = [*child_options.split(), "test_work.py"]
    command = [sys.executable, "-m", "proton_bench", "run", "--store", str(fleet), "--job", "tests"]
    command += ["pytest", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    assert done.returncode == 0
    assert "added 1 profile" in done.stderr
    sql = "SELECT count(*) FROM nodes WHERE kind = 'test' AND name LIKE '%test_work'"
    _, out, _ = proton("store", "query", f"{fleet}?job = 'tests'", sql, "--csv")
    assert out.splitlines()[1:] == ["1"]


def test_the_sum_of_profiles_is_written_in_any_format(
    fleet: Path, tmp_path: Path, proton: Proton
) -> None:
    file = tmp_path / "sum.proton"

    assert proton("store", "export", f"{fleet}?run = 'run0'", "-o", file) == (0, "", "")
    assert read_profile(file).inclusive("time (ns)")[0] == 2 * 303.0
    assert proton("store", "export", fleet, "-o", tmp_path / "sum.x")[0] == 2
    assert proton("store", "export", f"{fleet}?false", "-o", file)[0] == 2


def test_a_missing_library_is_named(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['deltalake'] = None; from proton_bench.cli import main; "
        f"sys.exit(main(['store', 'init', {str(tmp_path / 'fleet')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.returncode == 69
    assert "pip install" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_path_is_shown_over_runs(fleet: Path, proton: Proton) -> None:
    _, out, _ = proton("store", "path", fleet, "kernel", "--json")
    document = json.loads(out)
    names = [column["name"] for column in document["columns"]]
    rows = [dict(zip(names, row, strict=True)) for row in document["rows"]]

    assert [(row["run"], row["present"], row["total"]) for row in rows] == [
        ("run0", 2, 606.0),
        ("run1", 2, 612.0),
    ]
    code, table, _ = proton("store", "path", f"{fleet}?run = 'run0'", "kernel", "--by", "rank,path")
    assert code == 0
    assert [line[-14:] for line in table.splitlines()[1:3]] == ["0, step/kernel", "1, step/kernel"]


def test_selections_are_sides_of_comparisons_and_gates(fleet: Path, proton: Proton) -> None:
    sides = [f"{fleet}?run = 'run{run}'" for run in range(2)]

    _, out, _ = proton("diff", *sides, "--json")
    document = json.loads(out)
    totals = [[run["total"] for run in document[side]] for side in ("base", "new")]
    assert totals == [[606.0], [612.0]]

    code, out, _ = proton("gate", *sides, "--json")
    assert json.loads(out)["schema"] == "proton_bench.gate"
    assert code in {0, 3}


def test_a_selection_becomes_a_baseline(fleet: Path, tmp_path: Path, proton: Proton) -> None:
    baselines = ("--store", tmp_path / ".proton")

    assert proton("baseline", "save", "main", f"{fleet}?run = 'run0'", *baselines)[0] == 0
    _, out, _ = proton("baseline", "show", "main", "--json", *baselines)
    assert len(json.loads(out)["entries"][0]["runs"]) == 1


def test_slow_ranks_of_a_run_are_found(fleet: Path, proton: Proton) -> None:
    _, out, _ = proton("merge", "--stragglers", f"{fleet}?run = 'run1'", "--json")

    assert json.loads(out)["ranks"] == [0, 1]


def test_a_page_shows_the_history_of_runs_and_links_to_their_reports(
    fleet: Path, tmp_path: Path, proton: Proton
) -> None:
    report = tmp_path / "runs/run1/0.html"
    assert proton("report", report.with_suffix(".proton"))[0] == 0
    page = tmp_path / "page.html"

    code, out, _ = proton("report", fleet, "-o", page)

    assert (code, out) == (0, f"{page}\n")
    assert page.read_text().count("<a href=") == 1
    assert report.as_uri() in page.read_text()


@pytest.mark.parametrize(
    "words",
    [
        ["store", "path", "{fleet}", "nothing"],
        ["store", "path", "{fleet}", "fwd", "-m", "nothing (ns)"],
        ["store", "path", "{fleet}?job = 'nothing'", "fwd"],
        ["store", "path", "{fleet}", "kernel", "--by", "nope"],
        ["diff", "{fleet}?false", "{fleet}"],
        ["merge", "--stragglers", "{fleet}?nope"],
        ["report", "{fleet}", "-m", "time"],
        ["history", "{fleet}", "--path", "nothing"],
    ],
    ids=" ".join,
)
def test_wrong_questions_are_errors_of_the_caller(
    fleet: Path, tmp_path: Path, proton: Proton, words: list[str]
) -> None:
    file = tmp_path / "runs/run0/0.proton"
    code, out, err = proton(*(word.format(fleet=fleet, file=file) for word in words))

    assert (code, out) == (2, "")
    assert "Traceback" not in err
