"""The page's own files, and the template environment, which escapes everything."""

from __future__ import annotations

import base64
import functools
import hashlib
from importlib import resources

import jinja2

__all__ = ["content_policy", "environment", "read_asset", "script", "style"]

# One module in this order, not visible to the rest of the page.
_SCRIPTS = ("values.js", "tree.js", "labels.js", "flame.js", "table.js", "strip.js", "app.js")
_STYLES = ("page.css", "flame.css", "table.css", "plots.css")


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
    """Return the page's style sheet."""
    return "\n" + "\n".join(read_asset(name) for name in _STYLES)


@functools.cache
def content_policy() -> str:
    """Return the policy of the page: its own script and style by their hashes, and nothing else.

    No network, no frames, no forms; markup injected into the page could not run anything.
    """
    return (
        f"default-src 'none'; script-src '{_digest(script())}'; style-src '{_digest(style())}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
