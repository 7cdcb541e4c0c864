"""The page of 50 000 rows, made, opened and zoomed: python -m benchmarks.micro.report_page.

Pages of a million rows, of which they show a fifth, are only made. There is no other tool to
compare with. Opening and zooming needs playwright and an installed chromium; every round starts
with a fresh page. Time in the browser ends with the second frame drawn after what was asked.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.interleaved import median, print_machine, print_row
from benchmarks.micro.reading import kernels
from proton_bench.analysis.run import Run
from proton_bench.report.html.document import comparison_page, profile_page

ROWS = 50_000
ROUNDS = 7
MANY_ROWS = 1_000_000
MANY_ROUNDS = 3
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
# Both resolve with the milliseconds until the browser has drawn what changed.
DRAWN = """requestAnimationFrame(() => requestAnimationFrame(
    () => done(performance.now() - begin)))"""
PRESS = f"""key => new Promise(done => {{
    const begin = performance.now();
    document.getElementById('flame').dispatchEvent(new KeyboardEvent('keydown', {{key}}));
    {DRAWN};
}})"""
SEARCH = f"""text => new Promise(done => {{
    const begin = performance.now();
    const input = document.getElementById('flame-search');
    input.value = text;
    input.dispatchEvent(new Event('input'));
    {DRAWN};
}})"""
KEYS = {"zoom in": "Enter", "walk": "ArrowRight", "zoom out": "Escape"}


def seconds(make: Callable[[], str]) -> tuple[float, str]:
    """Return how long a page took to make, and the page."""
    begin = time.perf_counter()
    page = make()
    return time.perf_counter() - begin, page


@contextmanager
def opened_browser() -> Iterator[Any]:
    """Yield a browser, or None without one."""
    path = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        print("no browser: playwright and chromium are needed for the rest")
        yield None
        return
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=[*ARGUMENTS])
        yield browser
        browser.close()


def browsed(browser: Any, file: Path) -> dict[str, float]:
    """Return the milliseconds of each step in a fresh page."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready=yes]")
    found = {
        "from navigation to ready": float(
            page.evaluate("performance.getEntriesByType('navigation')[0].domComplete")
        )
    }
    page.focus("#flame")
    page.keyboard.press("ArrowDown")
    for name, key in KEYS.items():
        found[name] = float(page.evaluate(PRESS, key))
    found["search"] = float(page.evaluate(SEARCH, "kernel_12"))
    page.close()
    return found


def pages(rows: int) -> dict[str, Callable[[], str]]:
    """Return the functions that make the two kinds of pages, by name."""
    base, new = (Run(kernels(rows, shift), f"{shift}.proton") for shift in (0, 7))
    return {
        f"{rows:,} rows, one run": lambda: profile_page(new),
        f"{rows:,} rows, a comparison": lambda: comparison_page([base], [new]),
    }


def print_making(name: str, make: Callable[[], str], rounds: int) -> str:
    """Print how long a page takes to make and how large it is, and return it."""
    made = [seconds(make) for _ in range(rounds)]
    print_row(f"{name}, made", f"{median([each for each, _ in made]):.3f} s")
    print_row(f"{name}, size", f"{len(made[0][1].encode()) / 1e6:.2f} MB")
    return made[0][1]


def main() -> None:
    """Print seconds to make pages, their size, and milliseconds in the browser."""
    print_machine()
    with TemporaryDirectory() as folder, opened_browser() as browser:
        for name, make in pages(ROWS).items():
            page = print_making(name, make, ROUNDS)
            if browser is None:
                continue
            file = Path(folder) / "page.html"
            file.write_text(page, encoding="utf-8")
            rounds = [browsed(browser, file) for _ in range(ROUNDS)]
            for step in rounds[0]:
                print_row(f"{name}, {step}", f"{median([each[step] for each in rounds]):.0f} ms")
    for name, make in pages(MANY_ROWS).items():
        print_making(name, make, MANY_ROUNDS)


if __name__ == "__main__":
    main()
