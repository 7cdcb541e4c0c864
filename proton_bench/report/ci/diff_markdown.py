"""A comparison as Markdown, for pull requests and job summaries."""

from __future__ import annotations

import re

from proton_bench.analysis.compare.compare import Comparison
from proton_bench.analysis.compare.ranking import Ranking
from proton_bench.report.words.diff_rows import columns, footer, meanings, names, notes
from proton_bench.report.words.diff_summary import (
    calls_line,
    cost_lines,
    cost_warning,
    headline,
    loss_lines,
    side_lines,
)
from proton_bench.support.text import visible

__all__ = ["diff_markdown", "escaped"]

# Characters that could become markup, a cell's end, a link or a mention.
_MARKUP = re.compile(r"([\\`*_{}\[\]#|~$]|:(?=//))")
# GitHub links these by itself: mentions, except after a letter, where @ is part of a word such as
# file:line@function, and addresses without a scheme. &NoBreak; is a word joiner that our escaping
# does not treat as a hiding character.
_LINKED = re.compile(r"(?<!\w)@|\bwww(?=\.)", re.IGNORECASE)
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def escaped(text: str) -> str:
    """Return one line of text without markup, links or mentions."""
    text = visible(text, len(text)).translate(_ENTITIES)
    text = _LINKED.sub("\\g<0>&NoBreak;", text)
    return _MARKUP.sub(r"\\\1", text)


_MAX_INDENT = 16


def diff_markdown(comparison: Comparison, ranking: Ranking) -> str:
    """Return the headline, the runs and a table of the rows.

    Args:
        comparison: What to show.
        ranking: Which rows, in which order.
    """
    shown = columns(comparison, ranking)
    lines = [f"**{escaped(headline(comparison))}**", ""]
    lines += [f"- {word}: {escaped(text)}" for word, text in side_lines(comparison)]
    lines += [f"- {word}: {escaped(text)}" for word, text in cost_lines(comparison)]
    scaled = calls_line(comparison)
    lines += [f"- {escaped(scaled)}"] if scaled is not None else []
    warning = cost_warning(comparison)
    if warning is not None:
        lines.append(f"- {escaped(warning)}")
    lines += [f"- {escaped(loss)}" for loss in loss_lines(comparison)]
    titles = [escaped(column.heading) for column in shown]
    lines += ["", f"| {' | '.join([*titles, 'name', 'notes'])} |"]
    lines.append(f"|{' --: |' * len(titles)} :-- | :-- |")
    labels = names(comparison, ranking)
    for place, (row, depth, label) in enumerate(
        zip(ranking.rows, ranking.depths, labels, strict=True)
    ):
        indent = "&nbsp;&nbsp;" * min(depth, _MAX_INDENT)
        cells = [column.texts[place] for column in shown]
        cells += [indent + escaped(" › ".join(label)), escaped(", ".join(notes(comparison, row)))]
        lines.append(f"| {' | '.join(cells)} |")
    lines.append("")
    lines += [f"- {escaped(title)}: {escaped(text)}" for title, text in meanings(comparison)]
    lines += [f"- {escaped(line)}" for line in footer(comparison, ranking)]
    return "\n".join(lines) + "\n"
