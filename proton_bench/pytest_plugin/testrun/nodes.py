"""The nodes of a test run: session > file > class > test > setup, call, teardown."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from proton_bench.model.frame import COLLECTION_NAME, TEST_RUN_NAME

__all__ = ["TestNodes"]


class TestNodes:
    """Hooks that open nodes around everything that pytest runs."""

    __test__ = False  # pytest must not take the class for a test

    def __init__(self) -> None:
        self._nodes = contextlib.ExitStack()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Open the node of the whole run."""
        self._nodes.enter_context(_node(TEST_RUN_NAME))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Iterator[None]:
        """Open the node of the collection, which imports the modules of the tests."""
        with _node(COLLECTION_NAME):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Open the nodes of the file, the classes and the test."""
        with contextlib.ExitStack() as nodes:
            for name in _node_names(item):
                nodes.enter_context(_node(name))
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Iterator[None]:
        """Open the node of the fixtures' first halves."""
        with _node("setup"):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        """Open the node of the test function."""
        with _node("call"):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Iterator[None]:
        """Open the node of the fixtures' second halves."""
        with _node("teardown"):
            return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self) -> Iterator[None]:
        """Close the run's node, after the fixtures that end after the last test."""
        try:
            return (yield)
        finally:
            self.close()

    def close(self) -> None:
        """Close the run's node, if it is open."""
        self._nodes.close()

    def gather(self) -> list[str]:
        """Close the run's node and return the missing parts: none."""
        self.close()
        return []


def _node_names(item: pytest.Item) -> list[str]:
    """Return the names of the nodes around a test, from its file down to itself.

    Joined by ``::`` they are the test's node id, except where a plugin chose another id.
    """
    chain = item.listchain()
    file = next((i for i, node in enumerate(chain) if isinstance(node, pytest.File)), None)
    if file is None:
        return [item.nodeid or item.name]
    return [chain[file].nodeid or chain[file].name, *(node.name for node in chain[file + 1 :])]


@contextlib.contextmanager
def _node(name: str) -> Iterator[None]:
    from proton_bench import _native

    depth, states = _native.thread_depth(), _native.state_depth()
    _native.enter_scope(name, _native.KIND_TEST)
    try:
        yield
    finally:
        # A test may leave scopes and states open; these must not affect later tests.
        for _ in range(_native.state_depth() - states):
            _native.exit_state()
        for _ in range(_native.thread_depth() - depth - 1):
            _native.exit_op()
        if _native.thread_depth() > depth:
            _native.exit_scope(name)
