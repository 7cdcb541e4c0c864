"""pytest and ``proton gate`` say the same of the same files, row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.benchmarks import Replayed, record_of, runs_of, settings_of
from fakes.stored import put
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from integration.benchmark_runs import TIMED, document, make
from integration.outputs import RunPytest
from published import published
from sweeps import how_many

from proton_bench.analysis.run import Run, read_runs
from proton_bench.cli import main
from proton_bench.gate.baselines import BaselineStore
from proton_bench.pytest_plugin.benchmarks.end import judging
from proton_bench.pytest_plugin.benchmarks.end.judging import Judging

A, B, C = (f"test_x.py::test_{name}" for name in "abc")
BASE = {A: 100.0, B: 40.0}

Document = dict[str, Any]
Doors = Callable[..., Document]


def recorded(means_us: dict[str, float], *, seed: int = 2, **more: Any) -> list[Run]:
    """Return runs after those of the base."""
    return runs_of(means_us, **{"runs": 6, "seed": seed, "first": 10, **more})


@pytest.fixture
def doors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Doors:
    """Ask both doors about files; return what both say."""
    monkeypatch.chdir(tmp_path)

    def ask(base: str, words: Sequence[str] = (), **options: Any) -> Document:
        new = read_runs([Path("new")])
        made = Replayed(new, at_once=True)
        monkeypatch.setattr(judging, "fresh_runs_of", made.offered)
        chosen = settings_of(
            tmp_path, compare=(base,), storage=tmp_path / ".proton", runs=len(new), **options
        )
        asked = Judging(SimpleNamespace(), chosen, [record_of(A)])  # type: ignore[arg-type]
        asked.run(lambda: new[0])
        by_pytest = asked.document()
        capfd.readouterr()
        code = main(["gate", base, "new", "--json", *words])
        by_gate = published(capfd.readouterr().out)

        assert by_pytest == by_gate
        assert asked.exit_code == code
        found: Document = by_gate
        return found

    return ask


def judged(document: Document) -> dict[tuple[str, str], str]:
    """Return the verdict of each row."""
    rows = [row for row in document["rows"] if not row["is_extra"]]
    return {(row["path"][0], row["metric"]): row["verdict"] for row in rows}


CASES: dict[str, tuple[list[Run], str, dict[str, str]]] = {
    "unchanged": (recorded(BASE), "PASS", {A: "SAME", B: "SAME"}),
    "twice as slow": (recorded({A: 100.0, B: 80.0}), "FAIL", {A: "SAME", B: "REGRESSED"}),
    "few rounds": (recorded({A: 100.0, B: 80.0}, rounds=2), "FAIL", {A: "SAME", B: "REGRESSED"}),
    "other calls": (recorded(BASE, rounds=40, calls=64), "PASS", {A: "SAME", B: "SAME"}),
    "one removed": (recorded({A: 100.0}), "INCONCLUSIVE", {A: "SAME"}),
    "one removed, tests chosen": (recorded({A: 100.0}, chosen_tests=True), "PASS", {A: "SAME"}),
    "one added": (recorded({**BASE, C: 70.0}), "PASS", {A: "SAME", B: "SAME"}),
    "marker of the new side loosens nothing": (
        recorded({A: 100.0, B: 52.0}, thresholds={B: "median:1000%"}),
        "FAIL",
        {A: "SAME", B: "REGRESSED"},
    ),
    "marker forbids it": (
        recorded({A: 100.0, B: 48.0}, thresholds={B: "median:5%", A: "median:50%"}),
        "FAIL",
        {A: "SAME", B: "REGRESSED"},
    ),
    "one run": (
        recorded({A: 200.0, B: 40.0}, runs=1),
        "INCONCLUSIVE",
        {A: "INCONCLUSIVE", B: "INCONCLUSIVE"},
    ),
    "another device": (recorded(BASE, backend="other"), "INCOMPARABLE", {}),
    "another program": (recorded({C: 70.0}), "NO-BASELINE", {}),
}


@pytest.mark.nightly(keep=5)
@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_both_doors_say_the_same(doors: Doors, tmp_path: Path, case: str, stored: bool) -> None:
    new, verdict, rows = CASES[case]
    base = runs_of(BASE, runs=6, seed=1, backend="cpu")
    put(tmp_path / "new", *new)
    if stored:
        store = BaselineStore(tmp_path / ".proton")
        store.save("main", base)
        store.promote("main")
    else:
        put(tmp_path / "base", *base)

    found = doors("main" if stored else "base")

    assert found["verdict"] == verdict
    assert {path: said for (path, _), said in judged(found).items()} == rows


@pytest.mark.parametrize(
    ("words", "options", "exit_code"),
    [
        (["-t", "median:150%"], {"compare_fail": ("median:150%",)}, 0),
        (["-t", "*test_b/*@p95:10%"], {"compare_fail": ("*test_b/*@p95:10%",)}, 1),
        (["-t", "calls:0"], {"compare_fail": ("calls:0",)}, 1),
    ],
)
def test_options_mean_what_their_twins_mean(
    doors: Doors, tmp_path: Path, words: list[str], options: dict[str, Any], exit_code: int
) -> None:
    put(tmp_path / "base", *runs_of(BASE, runs=6, seed=1))
    put(tmp_path / "new", *recorded({A: 100.0, B: 80.0}, thresholds={B: "median:9%"}))
    (tmp_path / "gate.toml").write_text('threshold = "5%"\nquarantine = ["*test_b/**"]\n')

    assert doors("base", words, **options)["exit_code"] == exit_code


def test_the_policy_of_the_project_holds_at_both(doors: Doors, tmp_path: Path) -> None:
    put(tmp_path / "base", *runs_of(BASE, runs=6, seed=1))
    put(tmp_path / "new", *recorded({A: 100.0, B: 44.0}))
    (tmp_path / "pyproject.toml").write_text('[tool.proton.gate]\nthreshold = "30%"\n')

    found = doors("base")

    assert {row["threshold"] for row in found["rows"]} <= {"median:30%", "wall:90%"}
    assert found["verdict"] == "PASS"


@pytest.mark.parametrize("base", ["gone", "broken.proton", "empty"])
def test_what_cannot_be_compared_with_is_said_alike(
    doors: Doors, tmp_path: Path, base: str
) -> None:
    put(tmp_path / "new", *recorded(BASE))
    (tmp_path / "broken.proton").write_bytes(b"nothing")
    (tmp_path / "empty").mkdir()

    assert doors(base)["verdict"] == ("ERROR" if base == "broken.proton" else "NO-BASELINE")


_TIMES = st.dictionaries(
    st.sampled_from([A, B, C]), st.floats(0.05, 1e6, allow_nan=False), min_size=1
)


@settings(
    max_examples=how_many(25, 8),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_both_doors_say_the_same_of_any_times(
    doors: Doors, tmp_path: Path, data: st.DataObject
) -> None:
    before = data.draw(_TIMES, "base")
    after = data.draw(st.one_of(st.just(before), _TIMES), "new")
    thresholds = data.draw(
        st.dictionaries(
            st.sampled_from([A, B, C]),
            st.sampled_from(["median:5%", "p95:50%", "min:1us", "calls:0", "mean:100%"]),
        ),
        "markers",
    )
    sizes = st.integers(1, 6)
    for folder, times, marked, first in (("base", before, {}, 0), ("new", after, thresholds, 10)):
        runs = runs_of(
            times,
            runs=data.draw(sizes, folder),
            seed=data.draw(st.integers(0, 99), "seed"),
            first=first,
            rounds=data.draw(st.integers(1, 20), "rounds"),
            calls=data.draw(st.sampled_from([1, 4, 64]), "calls"),
            thresholds=marked,
        )
        for old in (tmp_path / folder).glob("*"):
            old.unlink()
        put(tmp_path / folder, *runs)

    found = doors("base")

    changed = {row["path"][0] for row in found["rows"]}
    asked = {name for name, text in thresholds.items() if text != "calls:0"}
    assert changed >= before.keys() & after.keys() & asked
    assert changed <= before.keys() & after.keys()


# -- a run of pytest itself --------------------------------------------------------------------
TESTS = """
    import pytest

    @pytest.mark.proton_bench(rounds=4)
    def test_a(proton_bench): proton_bench(sum, [1])

    @pytest.mark.proton_bench(rounds=5, threshold="median:300%")
    def test_b(proton_bench): proton_bench(sum, [2])

    def test_plain(): sum([3])
"""


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("workers", [(), ("-n2", "--dist=load")])
@pytest.mark.parametrize(
    ("step_ns", "chosen", "verdict", "code"),
    [
        (200_000, (), "INCONCLUSIVE", 3),
        (400_000, (), "INCONCLUSIVE", 3),
        (200_000, ("-k", "test_a"), "INCONCLUSIVE", 3),
    ],
)
def test_the_file_that_pytest_writes_is_what_it_judged(
    pytester: pytest.Pytester,
    run_pytest: RunPytest,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    workers: tuple[str, ...],
    step_ns: int,
    chosen: tuple[str, ...],
    verdict: str,
    code: int,
) -> None:
    if workers:
        pytest.importorskip("xdist")
    make(pytester, test_x=TESTS)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("CLOCK_STEP_NS", "200000")
    base = ("--proton", "--proton-name=base", "--proton-json=base.json", "-mproton_bench")
    run_pytest(*TIMED, *workers, *base)
    monkeypatch.setenv("CLOCK_STEP_NS", str(step_ns))

    result = run_pytest(
        *(*TIMED, *workers, *chosen, "--proton-name=new"),
        *("--proton-compare=base.proton", "--proton-json=times.json"),
    )
    by_pytest = document(pytester.path / "times.json")["gate"]
    capfd.readouterr()
    found = main(["gate", "base.proton", "new.proton", "--json"])
    by_gate = published(capfd.readouterr().out)

    assert (by_gate["verdict"], by_pytest["verdict"]) == (verdict, verdict)
    assert (result.ret, found) == (code, code)
    for each in (by_pytest, by_gate):
        each["new_runs"] = [Path(name).name for name in each["new_runs"]]
    assert by_pytest == by_gate
    rounds = [row for row in by_gate["rows"] if not row["is_extra"]]
    assert {row["path"][1] for row in rounds} == {"round"}
    allowed = {row["path"][0]: row["threshold"] for row in rounds}
    assert allowed["test_x.py::test_a"] == "median:3%"
    if not chosen:
        assert allowed["test_x.py::test_b"].endswith("@median:300%")
