"""Gates over the processes of a study, judged as any gate is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from benchmarks.studies.gate.study.archive import StudyError
from benchmarks.studies.gate.study.plan import BASE, SLOWDOWNS
from benchmarks.studies.gate.study.sides import Rename, cut, slowed_naming
from proton_bench.analysis.run import Run
from proton_bench.gate.judge.judgement import judge
from proton_bench.gate.judge.questions import Context
from proton_bench.gate.judge.result import GateResult
from proton_bench.gate.judge.verdict import SuiteVerdict, Verdict
from proton_bench.gate.machine.rate import Rate
from proton_bench.gate.policy.policy import Policy
from proton_bench.gate.statistics.arrangement import paired_as

__all__ = [
    "DEFAULT",
    "LOWER",
    "STRICT",
    "Block",
    "Power",
    "Tally",
    "blocks_of",
    "judge_aa",
    "judge_block",
    "judge_power",
]

DEFAULT = Policy()
# Every path counts, however small its part of the time or its change in absolute terms is.
STRICT = replace(Policy(), share=0.0).with_thresholds(["median:3%"])
# Thresholds below the default one.
LOWER = {
    part: replace(Policy(), share=0.0).with_thresholds([f"median:{part}%"]) for part in (2, 1.5, 1)
}


@dataclass(frozen=True, slots=True)
class Block:
    """Processes of one gate, in pairs of which the base is the first and the second in turn.

    Attributes:
        base: Base processes.
        new: Processes of the other side.
        base_first: For each pair, whether the base ran first.
    """

    base: tuple[Run, ...]
    new: tuple[Run, ...]
    base_first: tuple[bool, ...]


@dataclass(slots=True)
class Tally:
    """Counts of verdicts of gates.

    Attributes:
        verdicts: How often each verdict of the whole came.
        regressed: Gates with a path that was called slower.
        paths: Paths of a gate.
        reasons: Notes on the whole.
    """

    verdicts: Counter[str] = field(default_factory=Counter)
    regressed: int = 0
    paths: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, result: GateResult) -> None:
        """Count one gate."""
        self.verdicts[result.verdict.value] += 1
        self.regressed += bool(result.regressions)
        self.paths = max(self.paths, len(result.rows))
        self.reasons.update(note.reason.value for note in result.notes)

    @property
    def gates(self) -> int:
        """Return the number of gates."""
        return self.verdicts.total()

    @property
    def failed(self) -> Rate:
        """Return the number of failed gates."""
        return Rate(self.verdicts[SuiteVerdict.FAIL.value], self.gates)


@dataclass(slots=True)
class Power:
    """Verdicts on one slowed kernel.

    Attributes:
        gates: Gates with it.
        found: Those that called it slower.
        others: Those that called another path slower.
        verdicts: Verdicts on its path.
    """

    gates: int = 0
    found: int = 0
    others: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)


def blocks_of(runs: Sequence[Run], pairs: int) -> list[Block]:
    """Return disjoint gates of so many pairs; processes that are left over are not used.

    Raises:
        StudyError: There are too few processes for one, or no pairs.
    """
    size = 2 * pairs
    if pairs < 1 or len(runs) < size:
        raise StudyError(f"{len(runs)} processes are too few for a gate of {pairs} pairs")
    found = []
    for begin in range(0, len(runs) - size + 1, size):
        couples = [runs[at : at + 2] for at in range(begin, begin + size, 2)]
        turns = tuple(pair % 2 == 0 for pair in range(pairs))
        base = tuple(two[0 if turn else 1] for two, turn in zip(couples, turns, strict=True))
        new = tuple(two[1 if turn else 0] for two, turn in zip(couples, turns, strict=True))
        found.append(Block(base, new, turns))
    return found


def judge_aa(
    blocks: Iterable[Block], policy: Policy, *, coded: bool, clocked: bool = True
) -> Tally:
    """Judge gates in which nothing changed, over all paths."""
    tally = Tally()
    for block in blocks:
        same = _cut(block, (_as_is, _as_is), coded=coded, clocked=clocked)
        tally.add(judge_block(same, policy))
    return tally


def judge_power(
    blocks: Sequence[Block], works: Sequence[str], policy: Policy = STRICT, *, clocked: bool = True
) -> dict[tuple[str, float], Power]:
    """Judge gates with one slowed kernel each, of every kernel and slowdown."""
    return {
        (work, slowdown): _power(blocks, (work, slowdown), policy, clocked=clocked)
        for work in works
        for slowdown in SLOWDOWNS
    }


def _power(
    blocks: Sequence[Block], slowed: tuple[str, float], policy: Policy, *, clocked: bool
) -> Power:
    work, slowdown = slowed
    power = Power()
    sides = tuple(slowed_naming(work, slowdown, new=new) for new in (False, True))
    for block in blocks:
        result = judge_block(_cut(block, (sides[0], sides[1]), coded=True, clocked=clocked), policy)
        own = [row for row in result.rows if row.path[:2] == (work, BASE)]
        worst = [row.verdict for row in own if row.verdict is Verdict.REGRESSED]
        power.gates += 1
        power.found += bool(worst)
        power.others += any(row not in own for row in result.regressions)
        power.verdicts[
            (worst or [row.verdict for row in own] or [Verdict.INCONCLUSIVE])[0].value
        ] += 1
    return power


def _as_is(_work: str, variant: str) -> str:
    return variant


def _cut(block: Block, sides: tuple[Rename, Rename], *, coded: bool, clocked: bool) -> Block:
    base, new = (
        tuple(cut(run, rename, coded=coded, clocked=clocked) for run in runs)
        for runs, rename in zip((block.base, block.new), sides, strict=True)
    )
    return Block(base, new, block.base_first)


def judge_block(block: Block, policy: Policy) -> GateResult:
    """Judge the pairs of one gate."""
    arrangement = paired_as(block.base, block.new, block.base_first)
    return judge(block.base, block.new, policy, context=Context(arrangement=arrangement))
