"""Reads settings of the user: options of a mode, and variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from proton_bench.errors import UsageError
from proton_bench.plugin import Mode
from proton_bench.support.text import did_you_mean


@dataclass(frozen=True, slots=True)
class Number:
    """A numeric setting.

    Attributes:
        option: Option of the mode.
        allowed: Allowed numbers.
        default: The default.
    """

    option: str
    allowed: range
    default: int


class AskedValues:
    """Values of options and of variables.

    Args:
        mode: Mode with its options.
        environ: Environment to read.
    """

    def __init__(self, mode: Mode, environ: Mapping[str, str]) -> None:
        self._mode = mode
        self._environ = environ

    def number(self, wanted: Number) -> int:
        """Return the number.

        Args:
            wanted: Its option and allowed numbers.

        Raises:
            UsageError: It is not a number, or out of range.
        """
        name, text = self._find(wanted.option)
        if text is None:
            return wanted.default
        digits = text.strip()
        is_number = digits.isdecimal() and len(digits) < 20  # int refuses thousands of digits
        value = int(digits) if is_number else -1
        if value not in wanted.allowed:
            least, most = wanted.allowed[0], wanted.allowed[-1]
            raise UsageError(f"{name} is {text!r}: give a whole number from {least} to {most}")
        return value

    def choice(self, option: str, variable: str, choices: tuple[str, ...]) -> str:
        """Return one of some words.

        Args:
            option: Option of the mode; "" for none.
            variable: Variable of the environment; "" for none.
            choices: Allowed words, in lower case; the first is the default.

        Raises:
            UsageError: It is another word.
        """
        name, text = self._find(option, variable)
        if text is None:
            return choices[0]
        if text.lower() not in choices:
            meant = did_you_mean(text.lower(), choices) or f"; choose from: {', '.join(choices)}"
            raise UsageError(f"{name} is {text!r}{meant}")
        return text.lower()

    def switch(self, variable: str, *, unless_set: bool) -> bool:
        """Return the value of a variable, in upstream's words.

        Args:
            variable: Its name.
            unless_set: The value if it is not set.

        Raises:
            UsageError: It is another word.
        """
        name, text = self._find("", variable)
        if text is None:
            return unless_set
        words = {"1": True, "on": True, "true": True, "y": True, "yes": True}
        words |= {"0": False, "off": False, "false": False, "n": False, "no": False}
        if text.strip().lower() not in words:
            raise UsageError(f"{name} is {text!r}; choose from: {', '.join(words)}")
        return words[text.strip().lower()]

    def _find(self, option: str, variable: str = "") -> tuple[str, str | None]:
        if option in self._mode.options:
            return f"option {option!r} of mode {self._mode.text!r}", self._mode.options[option]
        return variable or option, self._environ.get(variable) or None
