"""Noise of a machine: variances of runs of the same program, stored for later gates.

A path has at least its stored variance, so that runs that were quiet by chance do not fail it. The
stored variance never replaces runs and never lowers a variance, because the machine may be noisier
today.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.errors import ProfileFormatError

__all__ = ["Noise", "PathNoise", "Spread", "UsedNoise"]

Numbers = npt.NDArray[np.float64]
Key = tuple[tuple[str, ...], int, str]

SCHEMA = "proton_bench.noise"
VERSION = (1, 1)
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
        runs: Number of runs.
        source: Its file, "" for none.
    """

    machine: Mapping[str, str]
    paths: tuple[PathNoise, ...]
    runs: int
    source: str = field(default="", compare=False)

    def fits(self, machine: Mapping[str, str]) -> bool:
        """Return whether it is of this machine, by the facts that both have."""
        return all(machine.get(fact, value) == value for fact, value in self.machine.items())

    def variances(self, keys: Sequence[Key], *, paired: bool) -> Numbers:
        """Return the stored variance of each (path, occurrence, metric); 0 for none."""
        known = {
            (each.path, each.occurrence, each.metric): each.pair if paired else each.run
            for each in self.paths
        }
        found = [known[key].variance if key in known else 0.0 for key in keys]
        return np.nan_to_num(np.array(found, dtype=np.float64))

    def to_document(self) -> dict[str, Any]:
        """Return JSON values, with the schema's name and version."""
        return {
            "schema": SCHEMA,
            "version": list(VERSION),
            "machine": dict(self.machine),
            "runs": self.runs,
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
                runs=int(document["runs"]),
                source=source,
            )
        except _UNREADABLE as error:
            if isinstance(error, ProfileFormatError):
                raise
            raise ProfileFormatError(
                f"{source!a} cannot be read as noise: {type(error).__name__} {error}"
            ) from error


# -- documents -----------------------------------------------------------------------------------
def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


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
