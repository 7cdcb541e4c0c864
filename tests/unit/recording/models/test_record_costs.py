"""What torch spends on records of operators, and what measuring that leaves behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import proton_bench as proton
from proton_bench.recording.native import native
from proton_bench.recording.session.provenance import measure_record_costs

torch = pytest.importorskip("torch")


@pytest.fixture
def session() -> Iterator[native.Session]:
    """A session that sees operators, however this torch keeps its records."""
    core = native.Session("ops", False)
    assert native.follow_torch("ops", False, 0, 0)
    core.activate()
    yield core
    core.deactivate()
    native.leave_torch("ops")
    core.remove()


def test_operators_and_nodes_are_counted_where_they_are_observed(session: native.Session) -> None:
    x = torch.ones(4, requires_grad=True)
    before = session.counts()

    y = x.neg().neg()
    forward = session.counts()
    torch.autograd.grad(y, x, torch.ones(4))
    after = session.counts()

    assert forward["operators"] - before["operators"] == 2
    assert forward["nodes"] == before["nodes"]
    assert after["nodes"] - forward["nodes"] == 2
    assert after["operators"] - forward["operators"] >= 4


def test_records_of_observed_operators_take_time(session: native.Session) -> None:
    # Other work on the machine may hide the cost in one of them.
    costs = [found for _ in range(5) if (found := measure_record_costs(has_nodes=True))]

    assert len(costs) == 5
    assert max(each.operator_ns for each in costs) > 0
    assert max(each.node_ns for each in costs) > 0


def test_measuring_leaves_torch_as_it_was(session: native.Session) -> None:
    state = torch.get_rng_state()
    assert native.enable_torch_records(enabled=False) is True

    with torch.inference_mode():
        costs = measure_record_costs(has_nodes=True)
        assert torch.is_inference_mode_enabled()
        assert not torch.is_grad_enabled()

    assert costs is not None
    assert native.enable_torch_records(enabled=True) is False
    assert torch.equal(torch.get_rng_state(), state)


def test_no_profile_shows_what_was_measured(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "x"), backend="cpu")
    torch.ones(4).exp()
    assert measure_record_costs(has_nodes=True) is not None
    proton.finalize(session, "proton")

    profile = proton.open_profile(tmp_path / "x.proton")

    names = {profile.name(row) for row in range(len(profile))}
    assert "aten::exp" in names
    assert "aten::neg" not in names


def test_nothing_is_measured_while_torchs_own_profiler_would_show_it(
    session: native.Session,
) -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        assert measure_record_costs(has_nodes=False) is None

    assert "aten::neg" not in {event.name for event in profiler.events()}
