"""Kernels whose events one warp starts and another may end; Triton has them from 3.9 on."""
# ruff: noqa: N803 - Triton writes compile-time parameters in capitals

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from instrumented_kernels import BLOCK, WARPS, Vectors
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.blackwell import clc
from triton.experimental.gluon.language.nvidia.hopper import mbarrier

import proton_bench.language as pl

pl.enable_semantic("triton")
LAYOUT = gl.BlockedLayout([1], [32], [WARPS], [0])
SHARED: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, order=[0])


@triton.jit
def timed_by_event(out, x, BLOCK: tl.constexpr):
    """One event around a copy."""
    offsets = tl.arange(0, BLOCK)
    event = pl.allocate_event("event")
    pl.start_event(event)
    values = tl.load(x + offsets)
    tl.store(out + offsets, values)
    pl.end_event(event)


@gluon.jit
def copy_with_events(out, x, rounds: gl.constexpr, SIZE: gl.constexpr, LAYOUT: gl.constexpr):
    """Copy to shared memory asynchronously, an event around issue and wait of each copy."""
    offsets = gl.arange(0, SIZE, LAYOUT)
    for number in gl.static_range(rounds):
        buffer = gl.allocate_shared_memory(gl.float32, [SIZE], SHARED)
        event = pl.allocate_event("async_copy")
        pl.start_event(event)
        async_copy.async_load(buffer, x + number * SIZE + offsets)
        async_copy.commit_group()
        async_copy.wait_group(0)
        pl.end_event(event)
        gl.store(out + number * SIZE + offsets, buffer.load(LAYOUT))


def async_copies(vectors: Vectors, rounds: int) -> Any:
    """Launch ``copy_with_events`` in one program."""
    return copy_with_events[(1,)](
        vectors.out, vectors.x, rounds=rounds, SIZE=128, LAYOUT=LAYOUT, num_warps=WARPS
    )


@gluon.jit
def _start(event, ready, buffer, x, SIZE: gl.constexpr, LAYOUT: gl.constexpr):
    pl.start_event(event)
    buffer.store(gl.load(x + gl.arange(0, SIZE, LAYOUT)))
    mbarrier.arrive(ready)


@gluon.jit
def _end(event, ready, buffer, out, SIZE: gl.constexpr, LAYOUT: gl.constexpr):
    mbarrier.wait(ready, 0)
    gl.store(out + gl.arange(0, SIZE, LAYOUT), buffer.load(LAYOUT))
    pl.end_event(event)


@gluon.jit
def handing_over(out, x, SIZE: gl.constexpr, LAYOUT: gl.constexpr):
    """Four warps load and start an event; four others store and end it."""
    buffer = gl.allocate_shared_memory(gl.float32, [SIZE], SHARED)
    ready = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(ready, count=1)
    event = pl.allocate_event("handed")
    gl.warp_specialize(
        [
            (_start, (event, ready, buffer, x, SIZE, LAYOUT)),
            (_end, (event, ready, buffer, out, SIZE, LAYOUT)),
        ],
        [4],
        [64],
    )


def handed_over(vectors: Vectors) -> Any:
    """Launch ``handing_over`` in one program of eight warps."""
    return handing_over[(1,)](vectors.out, vectors.x, SIZE=128, LAYOUT=LAYOUT, num_warps=WARPS)


@gluon.jit
def claiming(out, x, SIZE: gl.constexpr, LAYOUT: gl.constexpr):
    """Copy the block of this program, then blocks of programs that it prevents from starting."""
    response = gl.allocate_shared_memory(gl.int64, [2], SHARED)
    answered = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(answered, count=1)
    block = gl.program_id(0)
    phase = 0
    goes_on = True
    while goes_on:
        mbarrier.expect(answered, 16)
        clc.try_cancel(response, answered)
        offsets = block * SIZE + gl.arange(0, SIZE, LAYOUT)
        pl.enter_scope("copy")
        gl.store(out + offsets, gl.load(x + offsets))
        pl.exit_scope("copy")
        mbarrier.wait(answered, phase)
        phase ^= 1
        result = clc.load_result(response)
        goes_on = result.is_canceled()
        block = result.program_id(0)
    mbarrier.invalidate(answered)


def claimed_blocks(vectors: Vectors) -> Any:
    """Launch ``claiming`` with a program per block, most of which never start."""
    return claiming[(vectors.programs,)](
        vectors.out, vectors.x, SIZE=BLOCK, LAYOUT=LAYOUT, num_warps=WARPS
    )
