from __future__ import annotations

import pytest

# Here, because `pytester` drops at its end what a test imported, and numpy loads only once.
import proton_bench.gate  # noqa: F401
from proton_bench.errors import UsageError
from proton_bench.pytest_plugin.benchmarks.marker import Asked, is_benchmark, read_marker
from proton_bench.rounds.measurement import Device, Plan


def items_of(pytester: pytest.Pytester, marker: str) -> list[pytest.Item]:
    items, _ = pytester.inline_genitems(
        pytester.makepyfile(f"import pytest\n@pytest.mark.{marker}\ndef test_x(): pass"),
        "-pno:asyncio",
    )
    return items


def asked(pytester: pytest.Pytester, marker: str) -> Asked:
    return read_marker(items_of(pytester, marker)[0])


def test_every_argument_has_its_place(pytester: pytest.Pytester) -> None:
    found = asked(
        pytester,
        "proton_bench(rounds=7, warmup=2, max_time=0.25, flush_l2=False, cudagraph=True,"
        "threshold='median:2.5%&1us', metric='cpu', device='cuda', flops=2e9, bytes=1024)",
    )

    assert found == Asked(
        threshold="median:2.5%&1us",
        metric=Device.CPU,
        flops=2e9,
        bytes=1024.0,
        plan=Plan(
            rounds=7,
            warmup=2,
            max_time_s=0.25,
            flush_l2=False,
            cudagraph=True,
            device=Device.CUDA,
        ),
    )


@pytest.mark.parametrize("marker", ["proton_bench", "proton_bench()", "filterwarnings('default')"])
def test_without_arguments_the_defaults_hold(pytester: pytest.Pytester, marker: str) -> None:
    (item,) = items_of(pytester, marker)

    assert read_marker(item) == Asked()
    assert is_benchmark(item) is (marker != "filterwarnings('default')")


def test_the_marker_closer_to_the_test_wins(pytester: pytest.Pytester) -> None:
    items, _ = pytester.inline_genitems(
        pytester.makepyfile("""
            import pytest
            pytestmark = pytest.mark.proton_bench(rounds=1, max_time=1, warmup=9)
            @pytest.mark.proton_bench(rounds=2, max_time=2)
            class TestIt:
                @pytest.mark.proton_bench(rounds=3)
                def test_x(self): pass
        """),
        "-pno:asyncio",
    )
    found = read_marker(items[0])

    assert (found.plan.rounds, found.plan.max_time_s, found.plan.warmup) == (3, 2.0, 9)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("round=3", "no argument 'round'; did you mean 'rounds'?"),
        ("zzz=3", "no argument 'zzz'; arguments are rounds"),
        ("3", "named arguments only, not 3"),
        ("rounds=0", "rounds=0): expected a whole number, 1 or more"),
        ("rounds=2.5", "expected a whole number, 1 or more"),
        ("rounds=True", "expected a whole number, 1 or more"),
        ("warmup=0", "warmup=0): expected a whole number, 1 or more"),
        ("max_time=0", "a number above 0"),
        ("max_time=float('inf')", "a number above 0"),
        ("flops=-1", "a number above 0"),
        ("bytes='8'", "a number above 0"),
        ("flush_l2=1", "True or False"),
        ("cudagraph='yes'", "True or False"),
        ("device='gpu'", "one of 'cpu', 'cuda'"),
        ("metric='wall'", "one of 'gpu', 'cpu'"),
        ("threshold='median'", "column 7"),
        ("threshold='median:0%'", "only calls may have 0"),
        ("threshold='x@median:5%'", "leave the selector before '@' out"),
        ("threshold=5", "a text"),
    ],
)
def test_what_means_nothing_is_refused(
    pytester: pytest.Pytester, arguments: str, said: str
) -> None:
    with pytest.raises(UsageError) as error:
        asked(pytester, f"proton_bench({arguments})")

    assert said in str(error.value)
    assert str(error.value).startswith(
        "test_what_means_nothing_is_refused.py::test_x: proton_bench"
    )
