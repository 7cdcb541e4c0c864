"""Settings of every test run: what a test may require of the machine.

A test that needs something the machine may lack says so through the ``gpu`` or ``browser`` marker
or the ``require`` fixture and is skipped with the reason.
``PROTON_BENCH_REQUIRE=browser,go,node,gpu,rocm`` turns those skips into failures, so that a CI
machine cannot lose coverage in silence.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

# A shell starts background jobs with SIGINT ignored, and nohup ignores SIGHUP. The programs that
# tests start would inherit that.
for _number, _handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
REQUIRED = frozenset(filter(None, os.environ.get("PROTON_BENCH_REQUIRE", "").split(",")))


def _require(what: str, available: bool, reason: str) -> None:  # noqa: FBT001
    if available:
        return
    if what in REQUIRED:
        pytest.fail(f"PROTON_BENCH_REQUIRE names {what!r}, but {reason}", pytrace=False)
    pytest.skip(f"needs {what}: {reason}")


@pytest.fixture
def require() -> Callable[[str, bool, str], None]:
    """Return ``require(what, available, reason)``: skips, or fails, where ``what`` is missing."""
    return _require


@functools.cache
def _missing_gpu() -> str:
    """Return why there is no usable GPU, or an empty string."""
    if Path("/dev/kfd").exists():
        return ""
    import pynvml

    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        return f"no GPU driver was found ({error})"
    return "" if count else "the GPU driver reports no device"


@functools.cache
def _browser() -> str | None:
    """Return the path of the first browser there is, Playwright's own after those on the path."""
    return next(filter(None, map(shutil.which, _BROWSERS)), None) or _browser_of_playwright()


def _browser_of_playwright() -> str | None:
    if importlib.util.find_spec("playwright") is None:
        return None
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        path = driver.chromium.executable_path
    return path if os.access(path, os.X_OK) else None


@pytest.fixture(scope="session")
def browser_path() -> str:
    """Return the path of the browser; only for tests with the ``browser`` marker."""
    return _browser() or _BROWSERS[0]


@functools.cache
def _missing_browser() -> str:
    """Return why no browser can be driven, or an empty string."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed; the extra test has it"
    return "" if _browser() is not None else "chromium is not installed"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests with the ``gpu`` or ``browser`` marker where what they need is missing."""
    for what, missing in (("gpu", _missing_gpu), ("browser", _missing_browser)):
        if item.get_closest_marker(what) is not None:
            reason = missing()
            _require(what, not reason, reason)
