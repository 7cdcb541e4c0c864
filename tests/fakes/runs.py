"""Small runs to compare, and a hypothesis strategy for them."""

from __future__ import annotations

from hypothesis import strategies as st

from proton_bench.analysis.run import Run
from proton_bench.analysis.view.select import drop_metadata
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

GPU = Device("CUDA", 0, "90", 132)

# Path of scopes and kernel with "/" between them, time of all launches in ns, launches, code hash.
Launched = tuple[str, int, int, str]


def profile_of(*kernels: Launched, device: Device = GPU) -> Profile:
    """Return a profile of kernels under scopes, in the order of their first launch."""
    builder = ProfileBuilder()
    scopes: dict[str, int] = {"": 0}
    for path, time, count, code in kernels:
        above, _, name = path.rpartition("/")
        parts = above.split("/") if above else []
        for depth, part in enumerate(parts, start=1):
            here, parent = "/".join(parts[:depth]), "/".join(parts[: depth - 1])
            if here not in scopes:
                kind = FrameKind.TEST if part.startswith("test") else FrameKind.SCOPE
                scopes[here] = builder.add(scopes[parent], part, kind)
        builder.add(
            scopes[above],
            name,
            FrameKind.KERNEL,
            metrics={"time (ns)": time, "count": count},
            device=device,
            variant=Variant(code_hash=code) if code else None,
        )
    return builder.build()


def run_of(*kernels: Launched, source: str = "x.proton", device: Device = GPU) -> Run:
    """Return a run of `profile_of`."""
    return Run(profile_of(*kernels, device=device), source)


_NAMES = ("a", "b", "triton_poi_fused_add_0", "triton_poi_fused_add_1", "m.py:3@f", "m.py:9@f")


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """Return a small tree in which siblings share names, codes and signatures."""
    builder = ProfileBuilder()
    for _ in range(draw(st.integers(1, 14))):
        parent = draw(st.integers(0, len(builder) - 1))
        is_kernel = draw(st.booleans())
        code = draw(st.sampled_from(["", "c1", "c2", "c3"]))
        variant = Variant(
            code_hash=code,
            grid=(draw(st.integers(1, 2)), 1, 1),
            signature=draw(st.sampled_from(["", "*fp32"])),
        )
        metrics = {}
        if draw(st.booleans()):
            metrics["time (ns)"] = draw(st.integers(0, 5000))
        if is_kernel and draw(st.booleans()):
            metrics["count"] = draw(st.integers(0, 5))
        builder.add(
            parent,
            draw(st.sampled_from(_NAMES)),
            FrameKind.KERNEL if is_kernel else FrameKind.SCOPE,
            metrics=metrics,
            device=GPU if is_kernel else None,
            variant=variant if is_kernel else None,
        )
    builder.set(len(builder) - 1, "time (ns)", draw(st.integers(0, 5000)))
    # A comparison leaves out rows without values.
    return drop_metadata(builder.build())
