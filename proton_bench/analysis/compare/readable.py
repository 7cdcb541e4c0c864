"""A comparison to show: with readable texts instead of names."""

from __future__ import annotations

from dataclasses import replace

from proton_bench.analysis.compare.compare import Comparison
from proton_bench.analysis.naming.readable import Readable, texts_of
from proton_bench.model.frame import FrameKind

__all__ = ["with_texts"]


def with_texts(comparison: Comparison, readable: Readable) -> Comparison:
    """Return the comparison with texts that differ for all kernels of both sides.

    Rows were matched by their recorded names before, and lines of kernels keep theirs. Folding is
    not done here.
    """
    tree = comparison.tree
    no_line = tree.kinds != FrameKind.LINE
    rows = [
        (side.frames[no_line & side.present], tree.kinds[no_line & side.present])
        for side in (tree.base, tree.new)
    ]
    texts = texts_of(tree.strings, rows, readable, provenance=comparison.new[0].profile.provenance)
    names = dict(zip(tree.strings, texts, strict=True))
    shown = replace(tree, strings=texts, recorded=tree.strings, origins=tree.origins.renamed(names))
    return replace(comparison, tree=shown)
