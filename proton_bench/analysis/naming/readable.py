"""What makes a tree readable: which rows are folded, and what is shown instead of names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.naming.frame_names import Places, frame_texts
from proton_bench.analysis.naming.layers import fold_layers, fold_steps
from proton_bench.analysis.naming.nested import fold_library_frames, fold_nested
from proton_bench.analysis.view.names import stable_name
from proton_bench.model.arrays import Indexes
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance


@dataclass(frozen=True, slots=True)
class Readable:
    """What is made readable.

    Attributes:
        kernels: Names of kernels are short, and without Inductor's running numbers unless these
            tell kernels of one side apart.
        frames: Python frames are ``path:line function`` with a short path.
        fold_frames: Runs of library frames are one row.
        fold_layers: Equal layers of a model, and numbered steps, are one row.
    """

    kernels: bool = True
    frames: bool = True
    fold_frames: bool = True
    fold_layers: bool = True


def folded(profile: Profile, readable: Readable) -> Profile:
    """Return the profile with library frames, equal layers and steps folded, as asked."""
    if readable.fold_frames:
        profile = fold_library_frames(fold_nested(profile))
    return fold_layers(fold_steps(profile)) if readable.fold_layers else profile


def texts_of(
    strings: Sequence[str],
    rows: Iterable[tuple[Indexes, npt.NDArray[np.uint8]]],
    readable: Readable,
    *,
    provenance: Provenance,
) -> tuple[str, ...]:
    """Return what to show for each name.

    Args:
        strings: Distinct names.
        rows: Positions in ``strings`` and kinds of the rows of one side after the other.
        readable: What to make readable.
        provenance: Of the run whose folders short paths begin at.
    """
    is_kernel, is_frame = (np.zeros(len(strings), dtype=np.bool_) for _ in range(2))
    ambiguous: set[str] = set()
    for frames, kinds in rows:
        kernels = np.unique(frames[kinds == FrameKind.KERNEL])
        is_kernel[kernels] = True
        stems = Counter(stable_name(strings[place]) for place in kernels.tolist())
        ambiguous |= {stem for stem, count in stems.items() if count > 1}
        is_frame[frames[(kinds == FrameKind.PYTHON) | (kinds == FrameKind.LINE)]] = True
    texts = list(strings)
    if readable.frames:
        chosen = np.flatnonzero(is_frame & ~is_kernel).tolist()
        found = frame_texts((strings[place] for place in chosen), Places.of(provenance))
        for place in chosen:
            texts[place] = found.get(strings[place], strings[place])
    if readable.kernels and bool(is_kernel.any()):
        from proton_bench.analysis.naming.kernel_names import kernel_texts  # slow to load

        chosen = np.flatnonzero(is_kernel).tolist()
        found = kernel_texts(strings[place] for place in chosen)
        for place in chosen:
            text = found[strings[place]]
            stem = stable_name(text)
            texts[place] = text if stem in ambiguous else stem
    return tuple(texts)
