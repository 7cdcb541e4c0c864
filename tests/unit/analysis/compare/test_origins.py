from __future__ import annotations

import numpy as np

from proton_bench.analysis.compare.pairing import Origins


def test_a_path_is_put_together_when_it_is_asked_for() -> None:
    asked: list[int] = []

    def path(row: int) -> tuple[str, ...]:
        asked.append(row)
        return ("scope", f"k{row}")

    origins = Origins([(5, 2), (7, 3)], path)

    assert (len(origins), list(origins), 5 in origins, 2 in origins) == (2, [5, 7], True, False)
    assert asked == []
    assert origins.get(7) == ("scope", "k3")
    assert asked == [3]


def test_new_numbers_keep_the_chosen_ones() -> None:
    origins = Origins([(0, 2), (1, 3)], lambda row: (f"k{row}",))

    found = origins.renumbered(np.array([1, 2]), np.array([True, True, False]))

    assert found == {1: ("k2",)}
