"""Scopes of tasks that run in turn on one thread."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from capture_fixtures import FakeBackends

import proton_bench as proton
from proton_bench.errors import ScopeError
from proton_bench.recording.native import native

Tree = Callable[[], dict[str, Any]]
Runner = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture
def tree(tmp_path: Path, fakes: FakeBackends) -> Tree:
    """Start a session and return a function that reads its tree so far."""
    session = proton.start(tmp_path / "tasks")
    return lambda: proton.data.get(session)[0]


def _uvloop(main: Coroutine[Any, Any, Any]) -> Any:
    import uvloop

    return uvloop.run(main)


has_uvloop = pytest.mark.skipif(find_spec("uvloop") is None, reason="uvloop is not installed")


@pytest.fixture(
    params=[asyncio.run, pytest.param(_uvloop, marks=has_uvloop)], ids=["asyncio", "uvloop"]
)
def run(request: pytest.FixtureRequest) -> Runner:
    return request.param


def launch(kernel: str = "k") -> None:
    now_ns = time.monotonic_ns()
    native.emit_kernel(native.emit_launch(), kernel, now_ns, now_ns + 10, "CUDA", 0, 7)


def paths(node: dict[str, Any], above: tuple[str, ...] = ()) -> dict[tuple[str, ...], int]:
    """Return how many launches each path has."""
    counts = {}
    for child in node["children"]:
        path = (*above, child["frame"]["name"])
        if count := child["metrics"].get("count"):
            counts[path] = count
        counts |= paths(child, path)
    return counts


async def request(number: int, steps: int = 3) -> None:
    with proton.scope(f"request {number}"):
        for _ in range(steps):
            launch()
            await asyncio.sleep(0)
        with proton.scope("decode"):
            await asyncio.sleep(0)
            launch()
        await asyncio.sleep(0)
        launch("last")


def test_launches_of_a_thousand_requests_land_below_their_own(tree: Tree, run: Runner) -> None:
    async def serve() -> None:
        with proton.scope("serve"):
            await asyncio.gather(*(request(number) for number in range(1000)))

    run(serve())

    expected = {}
    for number in range(1000):
        own = ("serve", f"request {number}")
        expected |= {(*own, "k"): 3, (*own, "decode", "k"): 1, (*own, "last"): 1}
    assert paths(tree()) == expected


def test_trio_s_tasks_have_scopes_of_their_own(tree: Tree) -> None:
    trio = pytest.importorskip("trio")

    async def part() -> None:
        await trio.lowlevel.checkpoint()
        launch("part")

    async def work(number: int) -> None:
        with proton.scope(f"request {number}"):
            await trio.lowlevel.checkpoint()
            launch()
            await trio.to_thread.run_sync(launch, "thread")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(part)

    async def serve() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(3):
                nursery.start_soon(work, number)

    trio.run(serve)

    kernels = ("k", "thread", "part")
    assert paths(tree()) == {(f"request {n}", kernel): 1 for n in range(3) for kernel in kernels}


def test_open_frames_of_a_task_begin_where_the_thread_stands(tree: Tree) -> None:
    async def frames() -> list[tuple[int, str]]:
        with proton.scope("request"):
            return [(depth, name) for depth, (name, _, _) in native.open_frames()]

    with proton.scope("phase"), proton.scope("serve"):
        assert asyncio.run(frames()) == [(0, "phase"), (0, "serve"), (1, "request")]
    with proton.scope("phase"):
        assert [depth for depth, _ in native.open_frames()] == [1]


def test_tasks_stand_below_what_was_open_around_the_loop(tree: Tree) -> None:
    with proton.scope("phase"):
        asyncio.run(request(1, steps=1))
        launch("after")
    launch("outside")

    counts = paths(tree())

    assert ("phase", "request 1", "k") in counts
    assert counts["phase", "after"] == counts["outside",] == 1


def test_what_a_request_starts_lands_below_it(tree: Tree, run: Runner) -> None:
    started: list[asyncio.Task[None]] = []

    async def part(name: str) -> None:
        await asyncio.sleep(0)
        launch(name)

    async def scoped(name: str) -> None:
        with proton.scope(name):
            await asyncio.sleep(0)
            launch(name)
        launch(f"after {name}")

    async def work(number: int) -> None:
        with proton.scope(f"request {number}"):
            await asyncio.gather(part("a"), part("a"), scoped("b"))
            started.append(asyncio.create_task(part("late")))
        with proton.scope("other"):
            await asyncio.sleep(0)

    async def serve() -> None:
        await asyncio.gather(work(0), work(1), part("alone"))
        await asyncio.gather(*started)

    run(serve())

    expected = {("alone",): 1}
    for number in range(2):
        own = f"request {number}"
        expected |= {(own, "a"): 2, (own, "b", "b"): 1, (own, "after b"): 1, (own, "late"): 1}
    assert paths(tree()) == expected


@pytest.mark.parametrize(
    ("run", "function"),
    [
        (asyncio.run, "call_soon"),
        (asyncio.run, "call_later"),
        pytest.param(_uvloop, "call_soon", marks=has_uvloop),
    ],
)
def test_callbacks_of_a_request_land_below_it(tree: Tree, run: Runner, function: str) -> None:
    async def work(number: int) -> None:
        loop = asyncio.get_running_loop()
        called = asyncio.Event()
        with proton.scope(f"request {number}"):
            for call in (launch, called.set):
                loop.call_soon(call) if function == "call_soon" else loop.call_later(0, call)
        await called.wait()

    async def serve() -> None:
        await asyncio.gather(work(0), work(1))

    run(serve())

    assert paths(tree()) == {("request 0", "k"): 1, ("request 1", "k"): 1}


def test_worker_threads_run_below_the_request(tree: Tree, run: Runner) -> None:
    def scoped() -> None:
        with proton.scope("inner"):
            launch("scoped")
        launch("scoped")

    async def work(pool: ThreadPoolExecutor, number: int) -> None:
        loop = asyncio.get_running_loop()
        with proton.scope(f"request {number}"):
            await asyncio.gather(
                asyncio.to_thread(launch, "to_thread"),
                loop.run_in_executor(pool, launch, "executor"),
                loop.run_in_executor(pool, scoped),
                asyncio.to_thread(scoped),
            )
            pool.submit(launch, "submitted").result()

    async def serve() -> None:
        with ThreadPoolExecutor(1) as pool:
            await asyncio.gather(*(work(pool, number) for number in range(3)))
            pool.submit(launch, "nobody's").result()

    run(serve())

    expected = {("nobody's",): 1}
    for number in range(3):
        own = f"request {number}"
        one = {(own, name): 1 for name in ("to_thread", "executor", "submitted")}
        expected |= one | {(own, "inner", "scoped"): 2, (own, "scoped"): 2}
    assert paths(tree()) == expected


def test_anyio_s_tasks_and_threads_follow(tree: Tree, run: Runner) -> None:
    anyio = pytest.importorskip("anyio")
    pytest.importorskip("anyio.to_thread")

    def scoped() -> None:
        with proton.scope("inner"):
            launch("scoped")
        launch("scoped")

    async def part() -> None:
        await anyio.lowlevel.checkpoint()
        launch("part")

    async def work(number: int) -> None:
        with proton.scope(f"request {number}"):
            await anyio.to_thread.run_sync(launch)
            await anyio.to_thread.run_sync(scoped)
            async with anyio.create_task_group() as group:
                group.start_soon(part)

    async def serve() -> None:
        async with anyio.create_task_group() as group:
            for number in range(3):
                group.start_soon(work, number)

    run(serve())

    expected = {}
    for number in range(3):
        own = f"request {number}"
        expected |= {(own, "k"): 1, (own, "inner", "scoped"): 1}
        expected |= {(own, "scoped"): 1, (own, "part"): 1}
    assert paths(tree()) == expected


def test_a_loop_that_waits_stands_in_no_request(tree: Tree) -> None:
    loop = asyncio.new_event_loop()

    async def wait() -> None:
        with proton.scope("request"):
            loop.stop()
            await asyncio.Event().wait()

    loop.run_until_complete(request(0, steps=0))  # from the first one on, loops are followed
    task = loop.create_task(wait())
    loop.run_forever()
    thread = threading.Thread(target=launch)  # it follows the thread that started the session
    thread.start()
    thread.join()
    task.cancel()
    loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
    loop.close()

    assert paths(tree())["k",] == 1


def test_a_context_that_runs_within_a_request_belongs_to_it(tree: Tree) -> None:
    def scoped() -> None:
        with proton.scope("inner"):
            launch()

    async def work(number: int) -> None:
        with proton.scope(f"request {number}"):
            contextvars.copy_context().run(launch)
            contextvars.Context().run(launch)
            contextvars.copy_context().run(scoped)
            await asyncio.sleep(0)

    async def serve() -> None:
        await asyncio.gather(work(0), work(1))

    asyncio.run(serve())

    expected = {}
    for number in range(2):
        expected |= {(f"request {number}", "k"): 2, (f"request {number}", "inner", "k"): 1}
    assert paths(tree()) == expected


def test_contexts_of_plain_code_share_the_scopes_of_the_thread(tree: Tree) -> None:
    context = contextvars.copy_context()

    with proton.scope("a"):
        context.run(proton.enter_scope, "b")
        launch()
        contextvars.copy_context().run(launch)
        context.run(proton.exit_scope, "b")
        launch()

    assert paths(tree()) == {("a", "b", "k"): 2, ("a", "k"): 1}


def test_a_cancelled_request_ends_its_scopes(tree: Tree) -> None:
    async def wait(number: int) -> None:
        with proton.scope(f"request {number}"), proton.scope("wait"):
            await asyncio.Event().wait()

    async def serve() -> None:
        tasks = [asyncio.create_task(wait(number)) for number in range(3)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        await asyncio.gather(tasks[0], return_exceptions=True)
        launch()
        tasks[1].cancel()
        await asyncio.sleep(0)

    asyncio.run(serve())
    launch()

    assert paths(tree()) == {("k",): 2}
    assert native.thread_depth() == 0


def test_a_task_that_dies_with_an_open_scope_leaves_nothing(tree: Tree) -> None:
    async def left() -> None:
        proton.enter_scope("left")
        await asyncio.sleep(0)
        launch()

    async def serve() -> None:
        await asyncio.gather(*(left() for _ in range(100)))

    asyncio.run(serve())
    gc.collect()
    launch()
    with proton.scope("after"):
        launch()

    assert paths(tree()) == {("left", "k"): 100, ("k",): 1, ("after", "k"): 1}
    assert native.thread_depth() == 0


def test_a_scope_is_left_in_another_task(tree: Tree, run: Runner) -> None:
    scopes: dict[int, Any] = {}

    async def enter(number: int) -> None:
        scopes[number] = proton.scope(f"request {number}").__enter__()
        launch()
        for _ in range(4):
            await asyncio.sleep(0)
        launch("after")
        with proton.scope("next"):
            launch()

    async def leave(number: int) -> None:
        await asyncio.sleep(0)
        with proton.scope("leave"):
            scopes[number].__exit__(None, None, None)
            launch()

    async def serve() -> None:
        await asyncio.gather(*(enter(n) for n in range(3)), *(leave(n) for n in range(3)))

    run(serve())

    own = {(f"request {number}", "k"): 1 for number in range(3)}
    assert paths(tree()) == own | {("leave", "k"): 3, ("after",): 3, ("next", "k"): 3}


def test_a_scope_of_a_task_is_left_on_another_thread(tree: Tree) -> None:
    async def serve() -> None:
        scope = proton.scope("request").__enter__()
        thread = threading.Thread(target=scope.__exit__, args=(None, None, None))
        thread.start()
        thread.join()
        launch()

    asyncio.run(serve())

    assert paths(tree()) == {("k",): 1}


def test_scopes_of_asynchronous_generators(tree: Tree) -> None:
    async def numbers() -> AsyncIterator[int]:
        with proton.scope("numbers"):
            for number in range(2):
                await asyncio.sleep(0)
                yield number

    async def work(number: int) -> None:
        with proton.scope(f"request {number}"):
            async for _ in numbers():
                launch()
            async for _ in numbers():
                break  # closed later, in a task of its own
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    async def serve() -> None:
        await asyncio.gather(work(0), work(1))
        gc.collect()

    asyncio.run(serve())
    launch()

    own = {(f"request {number}", "numbers", "k"): 2 for number in range(2)}
    assert paths(tree()) == own | {("k",): 1}
    assert native.thread_depth() == 0


def test_exit_scope_needs_a_scope_of_the_task(tree: Tree) -> None:
    errors = []

    async def leave() -> None:
        try:
            proton.exit_scope("request")
        except ScopeError as error:
            errors.append(error)

    async def serve() -> None:
        with proton.scope("request"):
            await asyncio.create_task(leave())
            launch()

    asyncio.run(serve())

    assert len(errors) == 1
    assert paths(tree()) == {("request", "k"): 1}


def test_submitted_functions_have_their_own_keywords(tree: Tree) -> None:
    async def work(pool: ThreadPoolExecutor) -> str:
        with proton.scope("request"):
            return pool.submit("{function}{path}".format, function=1, path=2).result()

    with ThreadPoolExecutor(1) as pool:
        assert asyncio.run(work(pool)) == "12"


def test_functions_for_other_interpreters_stay_themselves(tree: Tree) -> None:
    futures = pytest.importorskip("concurrent.futures.interpreter")

    async def work(pool: ThreadPoolExecutor) -> int:
        with proton.scope("request"):
            return pool.submit(abs, -1).result()

    with futures.InterpreterPoolExecutor(1) as pool:
        assert asyncio.run(work(pool)) == 1


def test_worker_threads_pass_on_where_they_stand(tree: Tree) -> None:
    def outer(pool: ThreadPoolExecutor) -> None:
        with proton.scope("inner"):
            pool.submit(launch).result()

    async def work(pool: ThreadPoolExecutor, number: int) -> None:
        with proton.scope(f"request {number}"):
            await asyncio.get_running_loop().run_in_executor(pool, outer, pool)

    async def serve(pool: ThreadPoolExecutor) -> None:
        await asyncio.gather(work(pool, 0), work(pool, 1))

    with ThreadPoolExecutor(4) as pool:
        asyncio.run(serve(pool))

    assert paths(tree()) == {(f"request {number}", "inner", "k"): 1 for number in range(2)}


def test_a_thread_with_a_copied_context_lands_where_its_work_does(tree: Tree) -> None:
    def scoped() -> None:
        with proton.scope("inner"):
            launch()

    async def work(pool: ThreadPoolExecutor, number: int) -> None:
        with proton.scope(f"request {number}"):
            # As a thread of a pool does that began with the context of its first request.
            context = contexts.setdefault("first", contextvars.copy_context())
            await asyncio.get_running_loop().run_in_executor(pool, context.run, scoped)

    contexts: dict[str, contextvars.Context] = {}

    async def serve(pool: ThreadPoolExecutor) -> None:
        for number in range(2):
            await work(pool, number)

    with ThreadPoolExecutor(1) as pool:
        asyncio.run(serve(pool))

    assert paths(tree()) == {(f"request {number}", "inner", "k"): 1 for number in range(2)}


def test_states_of_tasks_are_their_own(tree: Tree, run: Runner) -> None:
    async def work(number: int) -> None:
        with proton.state(f"state {number}"):
            await asyncio.sleep(0)
            with proton.scope(f"request {number}"):
                await asyncio.sleep(0)
                launch()
            await asyncio.sleep(0)

    async def serve() -> None:
        await asyncio.gather(work(0), work(1))

    run(serve())

    assert paths(tree()) == {(f"request {n}", f"state {n}", "k"): 1 for n in range(2)}
    assert native.state_depth() == 0


@pytest.mark.parametrize("is_paused", [False, True])
def test_tasks_open_scopes_without_a_recording_session(tree: Tree, is_paused: bool) -> None:
    async def work(number: int) -> None:
        proton.enter_scope(f"request {number}")
        await asyncio.sleep(0)
        proton.exit_scope(f"request {number}")

    async def serve() -> None:
        await asyncio.gather(work(0), work(1))

    proton.deactivate() if is_paused else proton.finalize()
    asyncio.run(serve())

    assert native.thread_depth() == 0


def test_a_scope_that_outlives_its_task_keeps_its_time(
    tmp_path: Path, fakes: FakeBackends, monkeypatch: pytest.MonkeyPatch
) -> None:
    backends = (fakes.make("cpu", records_wall=True),)
    monkeypatch.setattr("proton_bench.plugin.manager.resolve_backend", lambda _: backends)
    session = proton.start(tmp_path / "tasks", backend="cpu")
    scopes: list[Any] = []

    async def enter() -> None:
        scopes.append(proton.scope("fixture").__enter__())
        launch()

    async def leave() -> None:
        scopes.pop().__exit__(None, None, None)

    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        loop.run_until_complete(loop.create_task(enter(), context=contextvars.copy_context()))
        gc.collect()
        loop.run_until_complete(leave())

    (fixture,) = proton.data.get(session)[0]["children"]
    assert fixture["frame"]["name"] == "fixture"
    assert fixture["metrics"]["wall (ns)"] > 0


def test_a_scope_over_two_sessions_is_followed_in_both(
    tree: Tree, tmp_path: Path, run: Runner
) -> None:
    async def part() -> None:
        await asyncio.sleep(0)
        launch()

    async def serve() -> dict[tuple[str, ...], int]:
        with proton.scope("server"):
            proton.finalize()
            session = proton.start(tmp_path / "second")
            with proton.scope("request"):
                task = asyncio.create_task(part())
            with proton.scope("other"):
                await task
        return paths(proton.data.get(session)[0])

    assert run(serve()) == {("request", "k"): 1}


def test_nothing_is_replaced_without_a_session(tree: Tree, tmp_path: Path, run: Runner) -> None:
    def functions() -> tuple[Any, ...]:
        return ThreadPoolExecutor.submit, asyncio.Handle._run

    proton.finalize()
    before = functions()
    run(request(0))
    assert functions() == before
    proton.start(tmp_path / "second")
    run(request(0))
    during = functions()

    proton.finalize()

    assert before[0] is not during[0]
    assert before[1] is not during[1]
    assert functions() == before
    run(request(0))
