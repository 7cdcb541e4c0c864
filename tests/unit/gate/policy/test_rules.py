from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fakes.gated import Kernel, reasons_of, row_of, session

from proton_bench.errors import PluginError, UsageError
from proton_bench.gate.judge.judgement import judge
from proton_bench.gate.judge.result import GateRow
from proton_bench.gate.judge.verdict import Reason, SuiteVerdict, Verdict
from proton_bench.gate.policy.policy import Policy, read_policy
from proton_bench.plugin.hookspecs import hookimpl
from proton_bench.plugin.manager import PluginManager

KERNELS = [Kernel(f"f/k{number}", between=0.003) for number in range(8)]
Offer = Callable[..., None]


@dataclass
class Plugin:
    rules: dict[str, Any]

    @hookimpl
    def proton_gate_rules(self) -> dict[str, Any]:
        return self.rules


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Offer:
    manager = PluginManager((), entry_points=False)
    monkeypatch.setattr("proton_bench.plugin.manager.get_plugin_manager", lambda: manager)
    return lambda **rules: manager.register(Plugin(rules), "acme")


def over_budget(row: GateRow) -> Verdict | None:
    return Verdict.REGRESSED if row.path == ("f", "k3") and row.new > 50_000 else None


def test_a_rule_may_fail_a_path_that_did_not_change(offer: Offer) -> None:
    offer(budget=over_budget)

    result = judge(*session(KERNELS), Policy(rules=("budget",)))

    assert result.verdict is SuiteVerdict.FAIL
    assert result.rows[0].path == ("f", "k3")
    assert "'budget'" in result.rows[0].causes[-1]
    assert Reason.NOTICE in reasons_of(result)
    others = [row for row in result.rows if row.path != ("f", "k3")]
    assert {row.verdict for row in others} == {Verdict.SAME}


def test_a_rule_may_forgive(offer: Offer) -> None:
    offer(lenient=lambda row: Verdict.SAME)
    slower = [Kernel("f/k0", slower=0.2, between=0.003), *KERNELS[1:]]

    result = judge(*session(slower), Policy(rules=("lenient",)))

    assert result.verdict is SuiteVerdict.PASS
    assert "'lenient'" in row_of(result).causes[-1]


def test_rules_that_the_policy_does_not_name_are_not_asked(offer: Offer) -> None:
    offer(budget=over_budget)

    assert judge(*session(KERNELS), Policy()).verdict is SuiteVerdict.PASS


@pytest.mark.parametrize("rule", [lambda row: 1 / 0, lambda row: "perhaps", lambda: None])
def test_a_rule_that_fails_is_an_error(offer: Offer, rule: Any) -> None:
    offer(broken=rule)

    with pytest.raises(PluginError, match="'broken'"):
        judge(*session(KERNELS, pairs=1), Policy(rules=("broken",)))


def test_an_unknown_rule_is_refused_with_the_policy(offer: Offer, tmp_path: Path) -> None:
    offer(budget=over_budget)
    file = tmp_path / "policy.toml"
    file.write_text('rules = ["budgte"]')

    with pytest.raises(UsageError, match=r"'budgte'.* budget"):
        read_policy(file)
    file.write_text('rules = ["budget"]')
    assert read_policy(file).rules == ("budget",)
    assert math.isclose(read_policy(file).threshold, 0.03)
