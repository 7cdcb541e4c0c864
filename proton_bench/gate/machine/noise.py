"""Noise of a machine: variances of runs of the same program, stored for later gates.

They help when runs are few. The stored variance of a path adds its degrees of freedom, unless the
runs at hand are significantly noisier (F test at 0.1 %).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from proton_bench.errors import ProfileFormatError
from proton_bench.gate.statistics.contrast import Contrast
from proton_bench.gate.statistics.prior import NO_PRIOR, Prior

__all__ = ["MetricNoise", "Noise", "PathNoise", "Spread", "UsedNoise", "pooled"]

Numbers = npt.NDArray[np.float64]
Key = tuple[tuple[str, ...], int, str]

SCHEMA = "proton_bench.noise"
VERSION = (1, 0)
_OUTDATED = 0.001
_UNREADABLE = (
    KeyError,
    TypeError,
    ValueError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
)


@dataclass(frozen=True, slots=True)
class Spread:
    """A variance of logarithms with its degrees of freedom."""

    variance: float
    freedom: float


@dataclass(frozen=True, slots=True)
class PathNoise:
    """The noise of one metric of one path.

    Attributes:
        path: Names from below the root, without line numbers and running numbers.
        occurrence: Which of several rows with this path it is.
        metric: As thresholds name it.
        pair: Spread of the difference of two runs in turn.
        run: Of single runs.
    """

    path: tuple[str, ...]
    occurrence: int
    metric: str
    pair: Spread
    run: Spread


@dataclass(frozen=True, slots=True)
class MetricNoise:
    """Expected noise of a path without stored noise.

    Attributes:
        metric: As thresholds name it.
        pair: Of pairs.
        run: Of single runs.
    """

    metric: str
    pair: Prior
    run: Prior


@dataclass(frozen=True, slots=True)
class UsedNoise:
    """The stored noise that a gate used.

    Attributes:
        source: Its file, "" if unknown.
        runs: Number of its runs.
    """

    source: str
    runs: int


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of one machine, measured with runs of one program.

    Attributes:
        machine: Facts of the machine, as `fingerprint.machine_of` returns them.
        paths: Noise of each path.
        metrics: Expected noise of other paths, for each metric.
        runs: Number of runs.
        source: Its file, "" for none.
    """

    machine: Mapping[str, str]
    paths: tuple[PathNoise, ...]
    metrics: tuple[MetricNoise, ...]
    runs: int
    source: str = field(default="", compare=False)

    def fits(self, machine: Mapping[str, str]) -> bool:
        """Return whether it is of this machine, by the facts that both have."""
        return all(machine.get(fact, value) == value for fact, value in self.machine.items())

    def spreads(self, keys: Sequence[Key], *, paired: bool) -> list[Spread]:
        """Return the spread of each (path, occurrence, metric); 0 degrees of freedom for none."""
        known = {
            (each.path, each.occurrence, each.metric): each.pair if paired else each.run
            for each in self.paths
        }
        return [known.get(key, Spread(math.nan, 0.0)) for key in keys]

    def priors(self, *, paired: bool) -> dict[str, Prior]:
        """Return the expected noise of each metric."""
        return {each.metric: each.pair if paired else each.run for each in self.metrics}

    def to_document(self) -> dict[str, Any]:
        """Return JSON values, with the schema's name and version."""
        return {
            "schema": SCHEMA,
            "version": list(VERSION),
            "machine": dict(self.machine),
            "runs": self.runs,
            "metrics": [
                {
                    "metric": each.metric,
                    "pair": _prior_document(each.pair),
                    "run": _prior_document(each.run),
                }
                for each in self.metrics
            ],
            "paths": [
                {
                    "path": list(each.path),
                    "occurrence": each.occurrence,
                    "metric": each.metric,
                    "pair": [_number(each.pair.variance), each.pair.freedom],
                    "run": [_number(each.run.variance), each.run.freedom],
                }
                for each in self.paths
            ],
        }

    @classmethod
    def from_document(cls, document: Any, source: str) -> Noise:
        """Return the noise from `to_document`.

        Args:
            document: Decoded JSON.
            source: Its origin, for messages.

        Raises:
            ProfileFormatError: It is something else, or of an unknown version.
        """
        try:
            if document["schema"] != SCHEMA or document["version"][0] != VERSION[0]:
                raise ProfileFormatError(
                    f"{source!a} is not noise of version {VERSION[0]}: measure it again"
                )
            return cls(
                machine={str(key): str(value) for key, value in document["machine"].items()},
                paths=tuple(_path_noise(each) for each in document["paths"]),
                metrics=tuple(
                    MetricNoise(
                        str(each["metric"]), _read_prior(each["pair"]), _read_prior(each["run"])
                    )
                    for each in document["metrics"]
                ),
                runs=int(document["runs"]),
                source=source,
            )
        except _UNREADABLE as error:
            if isinstance(error, ProfileFormatError):
                raise
            raise ProfileFormatError(
                f"{source!a} cannot be read as noise: {type(error).__name__} {error}"
            ) from error


def pooled(contrast: Contrast, stored: Sequence[Spread]) -> tuple[Numbers, Numbers]:
    """Return variances and degrees of freedom of each path, with its stored noise.

    Args:
        contrast: The runs at hand.
        stored: One spread for each path.
    """
    freedom = np.where(np.isfinite(contrast.variance), contrast.freedom, 0.0)
    variance = np.where(freedom > 0, np.nan_to_num(contrast.variance), 0.0)
    old = np.array([each.variance for each in stored], dtype=np.float64)
    old_freedom = np.array([each.freedom for each in stored], dtype=np.float64)
    old_freedom = np.where(np.isfinite(old) & (old > 0.0), old_freedom, 0.0)
    old = np.where(old_freedom > 0, old, 0.0)
    both = (freedom > 0) & (old_freedom > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        unlikely = special.fdtrc(
            np.maximum(freedom, 1.0), np.maximum(old_freedom, 1), variance / old
        )
    old_freedom = np.where(both & (unlikely < _OUTDATED), 0.0, old_freedom)
    together = freedom + old_freedom
    with np.errstate(divide="ignore", invalid="ignore"):
        mixed = (freedom * variance + old_freedom * old) / together
    return np.where(together > 0, mixed, np.nan), together


# -- documents -----------------------------------------------------------------------------------
def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _prior_document(prior: Prior) -> dict[str, float | str | None]:
    freedom = "infinite" if math.isinf(prior.freedom) else prior.freedom
    return {"variance": _number(prior.variance), "freedom": freedom}


def _read_prior(document: Mapping[str, Any]) -> Prior:
    if document["variance"] is None:
        return NO_PRIOR
    infinite = document["freedom"] == "infinite"
    freedom = math.inf if infinite else _positive(document["freedom"])
    return Prior(_positive(document["variance"]), freedom)


def _path_noise(document: Mapping[str, Any]) -> PathNoise:
    return PathNoise(
        tuple(str(name) for name in document["path"]),
        int(document["occurrence"]),
        str(document["metric"]),
        _read_spread(document["pair"]),
        _read_spread(document["run"]),
    )


def _read_spread(document: Sequence[Any]) -> Spread:
    variance, freedom = document
    if variance is None:
        return Spread(math.nan, 0.0)
    return Spread(_positive(variance), _positive(freedom))


def _positive(value: Any) -> float:
    number = float(value)
    if not (math.isfinite(number) and number >= 0.0):
        raise ValueError(f"{value!r} is not a variance with degrees of freedom")
    return number
