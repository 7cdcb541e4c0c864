"""The page's own files, and the template environment, which escapes everything."""

from __future__ import annotations

import base64
import functools
import hashlib
from importlib import resources

import jinja2

__all__ = ["content_policy", "environment", "read_asset", "script", "style"]

# One module in this order, not visible to the rest of the page.
_SCRIPTS = (
    "values.js",
    "tree.js",
    "merge.js",
    "labels.js",
    "colours.js",
    "flame_canvas.js",
    "facts.js",
    "flame.js",
    "table.js",
    "sandwich.js",
    "strip.js",
    "link.js",
    "theme.js",
    "app.js",
    "main.js",
)
_STYLES = ("page.css", "flame.css", "table.css", "plots.css", "history.css")


def read_asset(name: str) -> str:
    """Return the text of a file of the page."""
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


@functools.cache
def environment() -> jinja2.Environment:
    """Return the environment of all templates."""
    return jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(read_asset),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@functools.cache
def script() -> str:
    """Return the page's script."""
    return "\n" + "\n".join(read_asset(name) for name in _SCRIPTS)


@functools.cache
def style() -> str:
    """Return the style sheet of all pages."""
    return "\n" + "\n".join(read_asset(name) for name in _STYLES)


@functools.cache
def content_policy(*, has_script: bool = True) -> str:
    """Return the policy of a page: its own script and style by their hashes, and nothing else.

    No network, no frames, no forms; markup injected into the page could not run anything.

    Args:
        has_script: Whether the page has the script.
    """
    parts = (
        "default-src 'none'",
        f"script-src '{_digest(script())}'" if has_script else "",
        f"style-src '{_digest(style())}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return "; ".join(part for part in parts if part)


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
