"""Names of what makes call paths, as options take them."""

from __future__ import annotations

from proton_bench.errors import UsageError
from proton_bench.support.text import did_you_mean

SOURCES = ("shadow", "python", "layers", "ops", "shapes")
AUTO = "auto"


def parse_context(text: object) -> str:
    """Return the sources that a text names, in their usual form.

    Args:
        text: Names joined by ``+``. ``shadow`` is scopes, which every source but ``python`` has;
            ``auto`` is scopes, and layers of programs that use torch; ``shapes`` is operators by
            their shapes.

    Returns:
        Names joined by ``+`` in the order of ``SOURCES``, ``shadow`` only where it is alone.

    Raises:
        UsageError: A name is unknown, or two exclude each other.
    """
    names = text.lower().split("+") if isinstance(text, str) else [text]
    unknown = [name for name in names if name not in (*SOURCES, AUTO)]
    if unknown:
        choices = f"; choose from: {', '.join((*SOURCES, AUTO))}, joined by '+'"
        meant = did_you_mean(str(unknown[0]), (*SOURCES, AUTO))
        raise UsageError(f"Unknown context source: {unknown[0]}{meant or choices}")
    if "shadow" in names and "python" in names:
        raise UsageError(
            "context sources shadow and python exclude each other: Python frames take the place "
            "of scopes; choose one of them"
        )
    chosen = {"layers" if name == AUTO else name for name in names} - {"shadow"}
    chosen |= {"ops"} if "shapes" in chosen else set()
    return "+".join(name for name in SOURCES if name in chosen) or "shadow"
