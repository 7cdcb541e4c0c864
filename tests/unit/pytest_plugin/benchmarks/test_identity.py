from __future__ import annotations

import pytest

from proton_bench.pytest_plugin.benchmarks.in_test import benchmark_ids, parameters_of

SOURCE = """
    import enum
    import pytest

    class Kind(enum.Enum):
        PLAIN = 1

    class Shape:
        def __init__(self, *sizes): self.sizes = sizes
        def __repr__(self): return f"Shape{self.sizes}"

    class Opaque: pass

    @pytest.mark.parametrize("shape", [SHAPES])
    @pytest.mark.parametrize("size", [1, 2])
    def test_shaped(shape, size): pass

    @pytest.mark.parametrize("a,b", [((1,), {"k": 1})])
    def test_two(a, b): pass

    @pytest.mark.parametrize("value", [Opaque()])
    def test_opaque(value): pass

    @pytest.mark.parametrize("value", [pytest.param([1], id="named"), "text", Kind.PLAIN, len])
    def test_named(value): pass

    @pytest.mark.parametrize("value", [list(range(200))])
    def test_long(value): pass

    class TestGroup:
        def test_plain(self): pass
"""


def ids(pytester: pytest.Pytester, shapes: str) -> list[str]:
    items, _ = pytester.inline_genitems(
        pytester.makepyfile(test_x=SOURCE.replace("SHAPES", shapes)), "-pno:asyncio"
    )
    return list(benchmark_ids(items).values())


def test_values_stand_for_the_numbers_of_pytest(pytester: pytest.Pytester) -> None:
    found = ids(pytester, "Shape(1, 2), Shape(3, 4)")

    assert found[:4] == [
        "test_x.py::test_shaped[1-shape=Shape(1, 2)]",
        "test_x.py::test_shaped[1-shape=Shape(3, 4)]",
        "test_x.py::test_shaped[2-shape=Shape(1, 2)]",
        "test_x.py::test_shaped[2-shape=Shape(3, 4)]",
    ]
    assert found[4] == "test_x.py::test_two[a=(1,)-b={'k': 1}]"
    assert found[5] == "test_x.py::test_opaque[value0]"
    assert found[6:10] == [
        "test_x.py::test_named[named]",
        "test_x.py::test_named[text]",
        "test_x.py::test_named[Kind.PLAIN]",
        "test_x.py::test_named[len]",
    ]
    assert found[10].startswith("test_x.py::test_long[value=[0, 1, 2, 3")
    assert len(found[10]) < 120
    assert found[11] == "test_x.py::TestGroup::test_plain"


def test_an_inserted_parameter_renames_no_other(pytester: pytest.Pytester) -> None:
    before = ids(pytester, "Shape(1, 2), Shape(3, 4)")
    after = ids(pytester, "Shape(9, 9), Shape(1, 2), Shape(3, 4)")

    assert set(before) < set(after)


def test_tests_that_would_share_a_name_keep_the_numbers(pytester: pytest.Pytester) -> None:
    found = ids(pytester, "Shape(1, 2), Shape(1, 2), Shape(3, 4)")

    assert found[:3] == [
        "test_x.py::test_shaped[1-shape0]",
        "test_x.py::test_shaped[1-shape1]",
        "test_x.py::test_shaped[1-shape=Shape(3, 4)]",
    ]


def test_parameters_are_texts(pytester: pytest.Pytester) -> None:
    items, _ = pytester.inline_genitems(
        pytester.makepyfile(test_x=SOURCE.replace("SHAPES", "Shape(1)")), "-pno:asyncio"
    )

    assert parameters_of(items[0]) == {"shape": "Shape(1,)", "size": "1"}
    assert parameters_of(items[-1]) == {}
