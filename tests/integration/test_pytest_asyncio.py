"""Asynchronous tests: scopes of one task, of interleaved tasks, of loops that run on."""

from __future__ import annotations

import pytest
from integration.outputs import RunPytest, below_file, nodes_of_tests

pytest.importorskip("proton_bench._native")
pytest.importorskip("pytest_asyncio")

TESTS = """
    import asyncio
    import proton_bench as proton
    import pytest
    import pytest_asyncio

    @pytest_asyncio.fixture(loop_scope="session", scope="session")
    async def connection():
        with proton.scope("connect"):
            await asyncio.sleep(0)
        yield
        with proton.scope("disconnect"):
            await asyncio.sleep(0)

    @pytest.mark.asyncio(loop_scope="session")
    async def test_first(connection):
        with proton.scope("first"):
            await asyncio.sleep(0)

    @pytest.mark.asyncio(loop_scope="session")
    async def test_second(connection):
        with proton.scope("second"):
            await asyncio.sleep(0)
"""
# Two tasks of one thread take turns inside of their scopes.
INTERLEAVED = """
    import asyncio
    import proton_bench as proton

    async def work(name, mine, other):
        with proton.scope(name):
            mine.set()
            await other.wait()
            with proton.scope(f"{name}_inner"):
                await asyncio.sleep(0)

    async def test_two_tasks():
        first, second = asyncio.Event(), asyncio.Event()
        with proton.scope("together"):
            await asyncio.gather(work("a", first, second), work("b", second, first))
        with proton.scope("afterwards"):
            pass

    def test_next():
        with proton.scope("next"):
            pass
"""
LEFT_RUNNING = """
    import asyncio
    import proton_bench as proton
    import pytest

    pytestmark = pytest.mark.asyncio(loop_scope="module")
    gates = {}

    async def background():
        with proton.scope("background"):
            await gates["open"].wait()
        gates["done"].set()

    async def test_starts():
        gates.update(open=asyncio.Event(), done=asyncio.Event())
        gates["task"] = asyncio.ensure_future(background())
        await asyncio.sleep(0)

    async def test_ends():
        with proton.scope("before"):
            gates["open"].set()
            await gates["done"].wait()
            with proton.scope("below"):
                pass

    def test_last():
        with proton.scope("last"):
            pass
"""


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_scopes_of_coroutines_stand_below_their_test(
    pytester: pytest.Pytester, run_pytest: RunPytest, mode: str
) -> None:
    pytester.makepyfile(TESTS)

    result = run_pytest("--proton", f"--asyncio-mode={mode}")

    found = below_file(pytester.path / "pytest.proton")
    assert result.ret == 0
    assert {
        ("test_first", "setup", "connect"),
        ("test_first", "call", "first"),
        ("test_second", "call", "second"),
        ("test_second", "teardown", "disconnect"),
    } <= found


def test_interleaved_tasks_leave_the_other_tests_alone(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(INTERLEAVED)

    result = run_pytest("--proton", "--asyncio-mode=auto", "--proton-backend", "cpu")

    found = below_file(pytester.path / "pytest.proton")
    together = ("test_two_tasks", "call", "together")
    assert result.ret == 0
    assert {path for path in found if path[:3] == together and len(path) > 3} == {
        (*together, "a"),
        (*together, "a", "a_inner"),
        (*together, "b"),
        (*together, "b", "b_inner"),
    }
    assert ("test_two_tasks", "call", "afterwards") in found
    assert ("test_next", "call", "next") in found


def test_a_task_that_runs_longer_than_its_test_does_not_shift_the_next_ones(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(LEFT_RUNNING)

    result = run_pytest("--proton", "--asyncio-mode=strict")

    found = below_file(pytester.path / "pytest.proton")
    assert result.ret == 0
    assert ("test_starts", "call", "background") in found
    assert ("test_ends", "call", "before", "below") in found
    assert ("test_last", "call", "last") in found


def test_workers_run_asynchronous_tests(pytester: pytest.Pytester, run_pytest: RunPytest) -> None:
    pytest.importorskip("xdist")
    pytester.makepyfile(TESTS)

    result = run_pytest("--proton", "--asyncio-mode=strict", "-n", "2")

    nodes = nodes_of_tests(pytester.path / "pytest.proton")
    assert result.ret == 0
    assert [path[2] for path in nodes if path[3:] == ("call",)] == ["test_first", "test_second"]


def test_scopes_of_anyio_tests_stand_below_their_test(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytest.importorskip("anyio")
    pytester.makepyfile(
        """
        import anyio
        import proton_bench as proton
        import pytest

        @pytest.fixture
        def anyio_backend(): return "asyncio"

        @pytest.mark.anyio
        async def test_waits():
            with proton.scope("inside"):
                await anyio.sleep(0)
        """
    )

    result = run_pytest("--proton")

    assert result.ret == 0
    assert ("test_waits", "call", "inside") in below_file(pytester.path / "pytest.proton")
