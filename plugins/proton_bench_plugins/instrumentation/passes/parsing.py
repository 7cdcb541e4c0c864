"""Reads the text of ``--instrument``: ``PASS[:KEY=VALUE]...[,PASS...]``."""

from __future__ import annotations

import re
import sys
from typing import NoReturn

from proton_bench.errors import UsageError
from proton_bench.support.text import did_you_mean
from proton_bench_plugins.instrumentation.passes.registry import PRINT_OPS, pass_names
from proton_bench_plugins.instrumentation.passes.rule import Lines, Rule

_KEYS = ("kernel", "file", "line")
_LINES = re.compile(r"(\d{1,9})(-(\d{0,9}))?")
_JSON = "json"


def parse_passes(text: str) -> tuple[Rule, ...]:
    """Return the rules of a text such as ``loops,loads:kernel=matmul*:line=12-20|40``.

    Args:
        text: Passes separated by commas, each with filters separated by colons; ``|`` separates
            alternatives in a filter.

    Raises:
        UsageError: A pass or filter is unknown or malformed; the message names the column, from 1.
    """
    rules: list[Rule] = []
    column = 1
    for part in text.split(","):
        rules.append(_Part(text, column).read(part))
        column += len(part) + 1
    return tuple(rules)


class _Part:
    """One pass with its filters, at its place in the text."""

    def __init__(self, text: str, column: int) -> None:
        self._text = text
        self._column = column

    def read(self, part: str) -> Rule:
        name, *filters = part.split(":")
        if name.strip() not in pass_names():
            self._refuse_pass(name.strip())
        values: dict[str, str] = {}
        is_json = False
        at = len(name) + 1
        for each in filters:
            if each == _JSON and name.strip() == PRINT_OPS:
                is_json = True
            else:
                self._add(values, each, at)
            at += len(each) + 1
        return Rule(
            name=name.strip(),
            kernels=_alternatives(values.get("kernel", "")),
            files=_alternatives(values.get("file", "")),
            lines=tuple(self._lines(one, part) for one in _alternatives(values.get("line", ""))),
            as_json=is_json,
        )

    def _add(self, values: dict[str, str], filter_text: str, at: int) -> None:
        key, equals, value = filter_text.partition("=")
        if key not in _KEYS or not equals:
            choices = f"; choose from: {', '.join(f'{one}=' for one in _KEYS)}"
            meant = did_you_mean(key, _KEYS) if key not in _KEYS else ""
            self._refuse(at, f"there is no filter {filter_text!r}{meant or choices}")
        if not value.strip("|"):
            self._refuse(at, f"filter {key!r} has no value: write {key}=VALUE")
        if key in values:
            self._refuse(at, f"filter {key!r} is given twice: join its values with '|'")
        values[key] = value

    def _lines(self, value: str, part: str) -> Lines:
        match = _LINES.fullmatch(value)
        at = part.index(value, part.index("line="))
        if match is None:
            self._refuse(at, f"{value!r} is not a line: write 12, 12-20 or 12-")
        low = int(match[1])
        high = low if match[2] is None else int(match[3] or sys.maxsize)
        if low > high:
            self._refuse(at, f"lines {value} end before they begin")
        return low, high

    def _refuse_pass(self, name: str) -> NoReturn:
        meant = did_you_mean(name, pass_names()) or f"; choose from: {', '.join(pass_names())}"
        what = f"there is no pass {name!r}" if name else "a pass is missing"
        self._refuse(0, f"{what}{meant}")

    def _refuse(self, at: int, why: str) -> NoReturn:
        raise UsageError(f"passes {self._text!r}, column {self._column + at}: {why}")


def _alternatives(value: str) -> tuple[str, ...]:
    return tuple(filter(None, value.split("|")))
