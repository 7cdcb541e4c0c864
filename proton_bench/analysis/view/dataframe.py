"""Profiles as pandas data frames and as hatchet graph frames."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from proton_bench.analysis.view.select import METADATA_SCOPE
from proton_bench.errors import MissingExtraError
from proton_bench.formats.registry import find_format
from proton_bench.model.columns import metric_columns
from proton_bench.model.frame import KIND_NAMES
from proton_bench.model.profile import Profile

try:
    import pandas as pd
except ImportError as error:
    raise MissingExtraError(
        "data frames need pandas, which is not installed: pip install 'proton-bench[pandas]'"
    ) from error

if TYPE_CHECKING:
    import hatchet
    import thicket


def to_dataframe(profile: Profile) -> pd.DataFrame:
    """Return one line per row of the profile, in pre-order; the index is the row's number.

    Columns: ``name``, ``parent`` (-1 for the root), ``depth``, ``kind``, ``device``, ``variant``
    (positions in the profile's tables, missing where none), then each metric under its full name
    with the row's own values in the metric's unit: nullable Int64, float64 (NaN: none), or objects
    for texts and vectors. For each inclusive metric ``<name> (inc)`` holds the sum over the
    subtree, missing where nothing below was measured. A metric that has the name of one of the
    first columns is called ``<name> (metric)``.
    """
    facts: dict[str, Any] = {
        "name": [profile.strings[i] for i in profile.frames.tolist()],
        "parent": profile.parents,
        "depth": profile.depths(),
        "kind": pd.Categorical.from_codes(profile.kinds.astype(np.int8), KIND_NAMES),
        "device": _positions(profile.device_rows),
        "variant": _positions(profile.variant_rows),
    }
    taken = set(facts)
    for metric, suffix, values in metric_columns(profile):
        name = f"{metric} (metric)" if metric in taken else metric
        facts[name + suffix] = _rendered(values)
    return pd.DataFrame(facts, index=pd.RangeIndex(len(profile), name="row"))


def _positions(places: Any) -> Any:
    return pd.arrays.IntegerArray(places.astype(np.int32), places < 0)


def _rendered(values: Any) -> Any:
    if values.dtype == object:
        # A series, because pandas 3 makes its own string type of arrays of texts.
        return pd.Series(values, dtype="object")
    mask = np.ma.getmaskarray(values)
    if values.dtype.kind == "i":
        return pd.arrays.IntegerArray(np.ma.getdata(values).astype(np.int64), mask)
    recorded = np.ma.getdata(values)  # NaN and infinity are masked, and stay
    return np.where(mask & np.isfinite(recorded), np.nan, recorded)


def import_hatchet() -> Any:
    """Return the module ``hatchet``.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import hatchet
    except ImportError as error:
        raise MissingExtraError(
            f"hatchet is needed for graph frames and cannot be imported ({error}): "
            "pip install llnl-hatchet"
        ) from error
    _let_unify_write(hatchet.graphframe)
    return hatchet


def _let_unify_write(module: Any) -> None:
    """Make unifying of graph frames work if pandas returns read-only arrays.

    With copy-on-write pandas' ``values`` cannot be written to, and hatchet's compiled loop, which
    marks missing nodes in such an array before it puts that back, raises.
    """
    compiled: Any = getattr(module, "_gfm_cy", None)
    insert = getattr(compiled, "insert_one_for_self_nodes", None)
    if insert is None or getattr(insert, "__wrapped__", None) is not None:
        return

    @functools.wraps(insert)
    def insert_one(count: int, marks: Any, places: Any) -> None:
        marks.flags.writeable = True  # a new column of hatchet that is not shared
        insert(count, marks, places)

    compiled.insert_one_for_self_nodes = insert_one


def to_graphframe(profile: Profile) -> hatchet.GraphFrame:
    """Return the profile as a hatchet graph frame, inclusive metrics summed up.

    Variants of one kernel are one node; trees deeper than 400 levels are folded, because hatchet
    walks recursively.

    Raises:
        MissingExtraError: hatchet is not installed.
    """
    module = import_hatchet()
    literal = to_literal(profile)
    graphframe = module.GraphFrame.from_literal(literal[:1])
    graphframe.update_inclusive_columns()
    return graphframe


def to_thicket(profile: Profile, name: str | None = None) -> thicket.Thicket:
    """Return the profile as a thicket of one run, with its provenance as metadata.

    Args:
        profile: The profile.
        name: Key of the run; by default its host, process and start.

    Raises:
        MissingExtraError: Thicket or hatchet is not installed.
    """
    try:
        from thicket import Thicket
    except ImportError as error:
        raise MissingExtraError(
            f"Thicket cannot be imported ({error}): pip install llnl-thicket"
        ) from error
    graphframe = to_graphframe(profile)
    facts = profile.provenance.to_plain()
    graphframe.metadata = {key: _metadata_cell(value) for key, value in facts.items()}
    parts = (str(facts.get(key, "")) for key in ("host", "pid", "start_time_ns"))
    return Thicket.thicketize_graphframe(graphframe, name or " ".join(parts))


def _metadata_cell(value: Any) -> Any:
    is_plain = value is None or isinstance(value, str | int | float)
    return value if is_plain else json.dumps(value, default=str)


def to_literal(profile: Profile) -> list[dict[str, Any]]:
    """Return the profile as the two objects of a ``.hatchet`` file: the tree and the devices."""
    literal: list[dict[str, Any]] = json.loads(find_format("hatchet").encode(profile))
    return literal


def remove_frames(database: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return parsed ``.hatchet`` JSON without launch metadata and empty nodes.

    Args:
        database: Root nodes, and perhaps a table of devices; nodes are changed in place.
    """
    kept = [each if "frame" not in each else _without_metadata(each) for each in database]
    return [each for each in kept if each is not None]


def _without_metadata(node: dict[str, Any]) -> dict[str, Any] | None:
    """Return a node without metadata below it, or None if it is to be removed."""
    name, children = node["frame"]["name"], node.get("children", [])
    if name.partition(":")[0] == METADATA_SCOPE or not (node["metrics"] or children):
        return None
    kept = [child for child in map(_without_metadata, children) if child is not None]
    if children and not kept:
        return None
    node["children"] = kept
    return node
