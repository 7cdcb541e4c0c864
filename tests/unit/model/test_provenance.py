from __future__ import annotations

from typing import Any

import pytest

from proton_bench.model.provenance import Provenance

FACTS: dict[str, Any] = {"backend": "cpu", "versions": {"torch": "2.13"}, "argv": ["a", ["b"]]}


def test_facts_are_read_like_a_mapping() -> None:
    provenance = Provenance(FACTS)

    assert provenance["backend"] == "cpu"
    assert provenance.get("rank") is None
    assert dict(provenance["versions"]) == {"torch": "2.13"}
    assert len(provenance) == 3


def test_nested_facts_cannot_be_changed() -> None:
    provenance = Provenance(FACTS)

    with pytest.raises(TypeError):
        provenance["versions"]["torch"] = "1"
    assert provenance["argv"] == ("a", ("b",))


def test_plain_copy_equals_what_was_given() -> None:
    plain = Provenance(FACTS).to_plain()

    assert plain == FACTS
    assert repr(Provenance(FACTS)) == f"Provenance({FACTS!r})"


def test_update_makes_a_new_object() -> None:
    first = Provenance(FACTS)

    second = first.updated(backend="replay", rank=1)

    assert (first["backend"], second["backend"], second["rank"]) == ("cpu", "replay", 1)
