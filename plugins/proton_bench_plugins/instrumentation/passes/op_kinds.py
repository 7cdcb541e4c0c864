"""Operations of a kernel that the built-in passes bracket, and their kinds.

An operation has one kind for all passes, so that a scope keeps its name when a pass is added or
removed. Issuing asynchronous operations costs almost nothing; their time is in the wait, and both
are bracketed.
"""

from __future__ import annotations

__all__ = ["DOT_WAIT", "LOAD_WAIT", "LOOP", "PASS_KINDS", "op_kind"]

LOAD_WAIT = "load_wait"
DOT_WAIT = "dot_wait"
LOOP = "loop"

# Names of operations that the Triton releases we know have, without their dialect: NVIDIA's and
# AMD's operations of one name do the same, and the dialect of AMD's changed its name once.
_KINDS: dict[str, tuple[str, ...]] = {
    LOOP: ("scf.for", "scf.while"),
    "load": ("load", "masked_load", "buffer_load", "descriptor_load", "descriptor_gather"),
    "load_issue": (
        "async_copy_global_to_local",
        "async_tma_copy_global_to_local",
        "async_tma_gather",
        "buffer_load_to_local",
        "async_tdm_copy_global_to_local",
        "async_tdm_fused_copy_global_to_local",
        "async_tdm_gather",
    ),
    LOAD_WAIT: ("async_wait", "async_tdm_wait", "async_tdm_intrinsic_wait"),
    "local_load": (
        *("local_load", "local_gather", "local_load_packed_transposed"),
        "local_load_packed_tranposed",  # Triton's spelling until 3.8
    ),
    "tmem_load": ("tmem_load",),
    "store": (
        *("store", "masked_store", "buffer_store", "descriptor_store", "descriptor_scatter"),
        "descriptor_reduce",
    ),
    "atomic": (
        *("atomic_rmw", "atomic_cas", "atomic_store", "atomic_load", "buffer_atomic_rmw"),
        *("buffer_atomic_cas", "local_atomic_scatter_rmw"),
    ),
    "store_issue": (
        *("async_tma_copy_local_to_global", "async_tma_reduce", "async_tma_scatter"),
        *("async_copy_local_to_global", "async_tdm_copy_local_to_global", "async_tdm_scatter"),
    ),
    "store_wait": ("async_tma_store_wait",),
    "local_store": ("local_store", "local_scatter", "async_shared_store"),
    "tmem_store": ("tmem_store",),
    "dot": ("dot", "dot_scaled"),
    "dot_issue": ("warp_group_dot", "tc_gen5_mma", "tc_gen5_mma_scaled"),
    "dot_commit": ("tc_gen5_commit",),
    DOT_WAIT: ("warp_group_dot_wait",),
    "barrier_wait": ("wait_barrier", "cluster_wait", "cluster_barrier_wait"),
    "grid_wait": ("grid_dependency_wait",),
    "barrier": ("barrier", "local_barrier", "cluster_barrier"),
    "arrive": ("arrive_barrier", "cluster_arrive", "cluster_barrier_arrive", "barrier_expect"),
}
_DIALECTS = ("tt", "ttg", "ttng", "amdg", "amdgpu", "gpu")
_KIND_OF = {
    name if "." in name else f"{dialect}.{name}": kind
    for kind, names in _KINDS.items()
    for name in names
    for dialect in _DIALECTS
}

# A wait for a barrier belongs to the pass whose operation arrives there, see ``barrier_use``.
PASS_KINDS: dict[str, tuple[str, ...]] = {
    "loops": (LOOP,),
    "loads": ("load", "load_issue", LOAD_WAIT, "local_load", "tmem_load"),
    "stores": ("store", "atomic", "store_issue", "store_wait", "local_store", "tmem_store"),
    "dots": ("dot", "dot_issue", "dot_commit", DOT_WAIT),
    "waits": (LOAD_WAIT, DOT_WAIT, "store_wait", "barrier_wait", "grid_wait"),
    "barriers": ("barrier", "arrive", "barrier_wait"),
}


def op_kind(name: str) -> str | None:
    """Return the kind of an operation, None if no built-in pass brackets it.

    Args:
        name: With its dialect, ``tt.load``.
    """
    return _KIND_OF.get(name)
