"""The call-path tree as plain dictionaries: slow and obvious, to compare the package with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Path = tuple[str, ...]


@dataclass
class CallPathOracle:
    """Metrics by call path. Adding to a path that exists sums; a property is overwritten."""

    metrics: dict[Path, dict[str, Any]] = field(default_factory=lambda: {(): {}})
    properties: frozenset[str] = frozenset()

    def add(self, path: Iterable[str], values: Mapping[str, Any]) -> None:
        path = tuple(path)
        for depth in range(len(path) + 1):
            self.metrics.setdefault(path[:depth], {})
        own = self.metrics[path]
        for name, value in values.items():
            if name in own and name not in self.properties:
                own[name] = _plus(own[name], value)
            else:
                own[name] = value

    def inclusive(self, metric: str) -> dict[Path, Any]:
        return {
            path: sum(
                own.get(metric, 0)
                for other, own in self.metrics.items()
                if other[: len(path)] == path
            )
            for path in self.metrics
        }

    def children(self, path: Path) -> list[Path]:
        return [
            other for other in self.metrics if len(other) == len(path) + 1 and other[:-1] == path
        ]

    def preorder(self, path: Path = ()) -> list[Path]:
        order = [path]
        for child in self.children(path):
            order.extend(self.preorder(child))
        return order

    def folded(self, depth: int) -> CallPathOracle:
        shallow = CallPathOracle(properties=self.properties)
        for path in self.preorder():
            shallow.add(path[:depth], self.metrics[path])
        return shallow


def _plus(left: Any, right: Any) -> Any:
    if isinstance(left, tuple):
        return tuple(a + b for a, b in zip(left, right, strict=True))
    return left + right
