"""The origin of a profile: versions, device facts, command line, times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from proton_bench.model.frame import escape_surrogates


class Provenance(Mapping[str, Any]):
    """Frozen facts about a run. Unknown keys are kept; nested maps and lists are frozen too."""

    __slots__ = ("_facts",)

    def __init__(self, facts: Mapping[str, Any] | None = None) -> None:
        self._facts: Mapping[str, Any] = _frozen(facts or {})

    def __getitem__(self, key: str) -> Any:
        return self._facts[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def __repr__(self) -> str:
        return f"Provenance({self.to_plain()!r})"

    def __reduce__(self) -> Any:
        return Provenance, (self.to_plain(),)

    def to_plain(self) -> dict[str, Any]:
        """Return a copy made of dict and list, ready to be encoded."""
        plain: dict[str, Any] = _plain(self._facts)
        return plain

    def updated(self, **facts: Any) -> Provenance:
        """Return a copy with these keys added or replaced."""
        return Provenance({**self._facts, **facts})


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return MappingProxyType(
            {escape_surrogates(str(key)): _frozen(inner) for key, inner in value.items()}
        )
    if isinstance(value, str):
        return escape_surrogates(value)
    if isinstance(value, list | tuple):
        return tuple(_frozen(inner) for inner in value)
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return [_plain(inner) for inner in value]
    return value
