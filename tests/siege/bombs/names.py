"""Names that are long, mangled, or made for expressions."""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
from siege.bombs.deep import line
from siege.bombs.kinds import grown, kind_of, siblings, traced

from proton_bench.model.frame import FrameKind

kind = kind_of("names")


def named(names: Iterable[str], metrics: str = '{"time (ns)":1,"count":1}') -> bytes:
    """Return a tree whose nodes have these names."""
    return siblings(
        b'{"frame":{"name":%s},"metrics":%s,"children":[]}'
        % (json.dumps(name).encode(), metrics.encode())
        for name in names
    )


@kind(".hatchet", is_quick=True)
def packs_of_packs() -> bytes:
    return named("_Z1fIJ" + f"JiS{n % 9}_" * 400 + "E" * 400 + "Evv" for n in range(800))


@kind(".hatchet")
def functions_of_functions() -> bytes:
    return named("_Z1f" + "PF" * 900 + "v" + f"S{n % 7}_E" * 900 for n in range(900))


@kind(".hatchet")
def lambdas_in_lambdas() -> bytes:
    return named("_ZZ" * 700 + "1fvE" + f"UlvE{n}_" * 700 for n in range(700))


@kind(".hatchet")
def expressions_in_names() -> bytes:
    return named("_Z1fIX" + "plL" * 900 + "i1E" * 900 + f"EEv{n}" for n in range(900))


@kind(".hatchet")
def references_to_arguments() -> bytes:
    body = "_Z1fI" + "".join("St4pairIT_T0_E" for _ in range(60))
    return named(f"{body}{n}iiEvT_T0_" for n in range(4000))


@kind(".hatchet")
def names_of_rust() -> bytes:
    return named("_RNvC" + "B_" * 900 + f"{n}f" for n in range(2000))


@kind(".hatchet")
def conversions_without_end() -> bytes:
    return named("_ZN1AcvT_" + "I" * 1000 + f"NS_1B{n}" for n in range(4000))


@kind(".hatchet")
def one_name_of_nine_megabytes() -> bytes:
    return named(["n" * 9_000_000])


@kind(".hatchet", is_quick=True)
def long_names_that_differ_at_the_end() -> bytes:
    return named("n" * 9000 + str(number) for number in range(900))


@kind(".hatchet")
def long_names_that_differ_at_the_start() -> bytes:
    return named(str(number) + "n" * 9000 for number in range(900))


@kind(".hatchet")
def names_that_look_like_lines() -> bytes:
    return named(":1:1:1@" * 900 + ":" + "1" * 3000 + str(number) for number in range(900))


@kind(".hatchet")
def names_of_one_generated_kernel() -> bytes:
    return named("triton_poi_fused_" + "add_" * 1500 + str(number) for number in range(1200))


@kind(".hatchet", is_quick=True)
def names_that_move_the_cursor() -> bytes:
    parts = ("\x1b[2J", "\r\n", "\u202e", "e\u0301", "\U0001f468\u200d\U0001f469", "\x9b31m")
    return named(part * 2000 + str(number) for number in range(60) for part in parts)


@kind(".hatchet")
def names_of_brackets() -> bytes:
    return named("f<" * 2000 + "(" * 2000 + str(number) + ">" * 2000 for number in range(900))


@kind(".proton")
def long_names_on_a_chain() -> bytes:
    depth = 2000
    names = ["ROOT", *(f"{number}" + "n" * 4000 for number in range(depth))]
    kinds = np.full(depth + 1, FrameKind.SCOPE)
    kinds[-1] = FrameKind.KERNEL
    return grown(line(depth), names, frames=np.arange(depth + 1), kinds=kinds)


@kind(".proton", is_quick=True)
def one_long_name_on_a_chain() -> bytes:
    return grown(line(20_000), ["ROOT", "n" * 2_000_000])


@kind(".proton")
def one_long_name_on_many_rows() -> bytes:
    parents = np.zeros(200_000, dtype="<i4")
    parents[0] = -1
    return grown(parents, ["ROOT", "n" * 2_000_000])


@kind(".json.gz")
def functions_of_python() -> bytes:
    name = b"(1): " * 3000
    return traced(
        b",".join(
            b'{"ph":"X","cat":"python_function","name":"%s(%d): f","pid":1,"tid":1,"ts":%d,"dur":1}'
            % (name, number, number)
            for number in range(500)
        )
        + b"]}"
    )


@kind(".hatchet")
def names_of_metrics_that_are_long() -> bytes:
    node = b'{"frame":{"name":"n"},"metrics":{"%s%d":1},"children":[]}'
    return siblings(node % (b"m" * 20_000, number) for number in range(400))


@kind(".hatchet")
def anonymous_namespaces() -> bytes:
    return named("(anonymous namespace)::" * 400 + f"f{number}<>" for number in range(900))
