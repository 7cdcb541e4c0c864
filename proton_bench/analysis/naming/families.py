"""The families of kernels whose names are understood: one row each, with the source of its rule.

A row of `TEMPLATES` is found by the function's name, one of `SYMBOLS` by the beginning of a name
that is not a C++ declaration. Its form has holes: words in braces, filled by `kernel_names`. What a
row leaves out is not lost, because equal texts of different kernels get what differs.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Template:
    """A C++ template.

    Attributes:
        name: The function's own name, or with a star the beginning of it.
        form: What to show.
        scope: A part of the namespaces; "" for any.
    """

    name: str
    form: str
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name that is not a declaration, made of parts between underscores.

    Attributes:
        start: Matches the beginning of a name; its groups fill holes.
        form: What to show.
    """

    start: re.Pattern[str]
    form: str


TEMPLATES = (
    # PyTorch, elementwise and reductions
    # aten/CUDALoops.cuh
    Template("vectorized_elementwise_kernel", "elementwise {op}{<} vec{0}"),
    Template("vectorized_templated_elementwise_kernel", "elementwise {op}{<} cast vec{0}"),
    Template("unrolled_elementwise_kernel*", "elementwise {op}{<} unrolled"),
    # aten/Loops.cuh
    Template("elementwise_kernel_with_index", "elementwise index {op}{<}"),
    # aten/CUDALoops.cuh
    Template("elementwise_kernel*", "elementwise {op}{<}"),
    # aten/IndexKernel.cu
    Template("index_elementwise_kernel", "index {op}{<}"),
    # aten/ScatterGatherKernel.cu
    Template("_scatter_gather_elementwise_kernel", "scatter_gather {op}{<}"),
    # aten/IndexKernelUtils.cu
    Template("vectorized_gather_kernel", "gather {0} B"),
    # aten/Reduce.cuh
    Template("reduce_kernel", "reduce {op}{<}", scope="native"),
    # aten/MultiTensorApply.cuh
    Template("multi_tensor_apply_kernel", "foreach {op}{<}"),
    # aten/DistributionTemplates.h
    Template("distribution_elementwise_grid_stride_kernel*", "random {op}{<}"),
    # aten/Shape.cu
    Template("CatArrayBatchedCopy*", "cat{variant}{<:0} {2}d"),
    # aten/Dropout.cu
    Template("fused_dropout_kernel*", "dropout fwd{<}"),
    # aten/ScanUtils.cuh
    Template("tensor_kernel_scan_*", "scan{variant}{<}"),
    # aten/TriangularOps.cu
    Template("triu_tril_kernel", "triu_tril{<}"),
    # PyTorch, normalisation and losses
    # aten/layer_norm_kernel.cu
    Template("vectorized_layer_norm_kernel", "layer_norm fwd{<}"),
    Template("LayerNormForwardCUDAKernel", "layer_norm fwd{<} unvectorized"),
    Template("layer_norm_grad_input_kernel*", "layer_norm bwd input{<}"),
    Template("GammaBetaBackward*", "layer_norm bwd weight{<}"),
    Template("cuComputePartGradGammaBeta", "layer_norm bwd weight part{<}"),
    Template("cuComputeGradGammaBeta", "layer_norm bwd weight{<}"),
    # aten/group_norm_kernel.cu
    Template("RowwiseMomentsCUDAKernel", "norm moments{<}"),
    # aten/PersistentSoftmax.cuh
    Template("softmax_warp_forward", "{log:4}softmax fwd{<}"),
    Template("softmax_warp_backward", "{log:4}softmax bwd{<}"),
    # aten/SoftMax.cu
    Template("cunn_SoftMaxForward*", "{log}softmax fwd{<}"),
    Template("cunn_SoftMaxBackward*", "{log}softmax bwd{<}"),
    Template("cunn_SpatialSoftMaxForward", "{log}softmax spatial fwd{<}"),
    Template("cunn_SpatialSoftMaxBackward", "{log}softmax spatial bwd{<}"),
    # aten/Normalization.cuh
    Template("batch_norm_*", "batch_norm {rest}{<}"),
    # aten/Loss.cu
    Template("nll_loss*", "{words}{<}"),
    # aten/CrossKernel.cu
    Template("cross_kernel", "cross{<}"),
    # aten/Embedding.cu
    Template("embedding_backward_feature_kernel", "embedding bwd{<}"),
    # aten/Indexing.cu
    Template("indexing_backward_kernel*", "index bwd{<}"),
    Template("indexSelect*", "index_select{variant}{<}"),
    # aten/TensorTopK.cu
    Template("gatherTopK", "topk gather{<}"),
    # Attention
    # flash-attention, csrc/flash_attn/src/flash_fwd_launch_template.h
    Template("flash_fwd_kernel", "flash fwd {type} d{head}{causal:2}"),
    Template("flash_fwd_splitkv_kernel", "flash fwd split {type} d{head}{causal:1}"),
    Template("flash_fwd_splitkv_combine_kernel", "flash fwd combine {type} d{head}"),
    # flash-attention, csrc/flash_attn/src/flash_bwd_launch_template.h
    Template("flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel", "flash bwd {type} d{head}{causal:2}"),
    Template("flash_bwd_dot_do_o_kernel", "flash bwd dot {type} d{head}"),
    Template("flash_bwd_convert_*", "flash bwd convert {type} d{head}"),
    # flash-attention, hopper/flash_fwd_kernel.h
    Template("compute_attn_ws", "flash3 fwd {type} d{head}"),
    # CUTLASS; `device_kernel` launches everything of version 3
    # cutlass, include/cutlass/device_kernel.h
    Template("Kernel", "{inner}", scope="cutlass"),
    Template("Kernel2", "{inner}"),
    Template("device_kernel", "{inner}", scope="cutlass"),
    # cuBLAS and magma
    # cublas, names in traces
    Template("gemv2T_kernel_val", "gemv t {type} (cublas)"),
    Template("gemv2N_kernel", "gemv n {type} (cublas)"),
    Template("gemvNSP_kernel", "gemv n {type} (cublas)"),
    Template("kernel", "gemv {type} (cublas)", scope="gemvx"),
    Template("gemmSN_*", "gemm {type} small (cublas)"),
    Template("gemmk1_kernel", "gemm {type} k1 (cublas)"),
    Template("sgemm_largek_lds64", "gemm f32 largek (cublas)"),
    Template("dot_kernel", "dot {type} (cublas)"),
    Template("reduce_1Block_kernel", "dot reduce {type} (cublas)"),
    Template("splitKreduce_kernel", "gemm splitk reduce {type} (cublas)"),
    Template("magma_sgemmEx_kernel", "gemm f32 (magma)"),
    # cuDNN
    # cudnn, names in traces
    Template("implicit_convolve_*", "conv implicit {type} (cudnn)"),
    Template("precomputed_convolve_*", "conv precomputed {type} (cudnn)"),
    Template("nchwToNhwcKernel", "nchw to nhwc {type} (cudnn)"),
    Template("nhwcToNchwKernel", "nhwc to nchw {type} (cudnn)"),
    Template("*", "{own}{<} (cudnn)", scope="cudnn"),
    # CUB and thrust, also under the names that other libraries give their copy
    # cccl, cub/device/dispatch/dispatch_radix_sort.cuh
    Template("DeviceRadixSort*", "sort radix{variant}{<} (cub)"),
    Template("DeviceSegmentedRadixSort*", "sort radix segmented{variant}{<} (cub)"),
    Template("RadixSortScanBins*", "sort radix bins{<} (cub)"),
    # cccl, cub/device/dispatch/dispatch_merge_sort.cuh
    Template("DeviceMergeSort*", "sort merge{variant}{<} (cub)"),
    # cccl, cub/device/dispatch
    Template("Device*", "{cub}{<} (cub)", scope="cub"),
    # cccl, thrust/system/cuda/detail/core/agent_launcher.h
    Template("_kernel_agent", "thrust {agent}{<}"),
    # ROCm
    # composable_kernel, include/ck/tensor_operation
    Template("kernel_*", "{rest}{<} (ck)", scope="ck"),
    # composable_kernel, include/ck_tile/host/kernel_launch.hpp
    Template("kentry*", "{agent}{<} (ck)"),
    # rocBLAS, library/src/blas2
    Template("rocblas_*", "{rest}{<} (rocblas)"),
    # rocprim, device/config_types.hpp
    Template("trampoline_kernel", "rocprim {agent}{<}"),
    # Serving
    # vllm, csrc
    Template("*", "{own}{<...>} (vllm)", scope="vllm"),
)

_CHIP = "(?P<chip>ampere|volta|turing|maxwell|pascal|kepler|hopper|ada)_"
_OPERAND = "(?:(?P<operand>fp16|bf16|tf32|f16|f32|f64|int8|i8|s8)_)?"
SYMBOLS = (
    # cublas, names in traces
    Symbol(
        re.compile(rf"(?:trt_)?{_CHIP}{_OPERAND}(?P<letter>[sdczhi])\d{{0,6}}gemm_"),
        "gemm {dtype} {tile} {layout} (cublas {sm})",
    ),
    # cudnn, names in traces
    Symbol(
        re.compile(
            rf"(?:cudnn_infer_|cudnn_train_)?{_CHIP}(?P<letter>[sh])cudnn_(?P<what>winograd_)?"
        ),
        "conv {what}{dtype} {tile} {layout} (cudnn {sm})",
    ),
    # cutlass, python/cutlass_library/gemm_operation.py and conv2d_operation.py
    Symbol(
        re.compile(
            r"cutlass_(?:(?P<number>\d{2,3})_)?(?:wmma_)?(?:tensorop|simt)_"
            + _OPERAND
            + r"(?:[if]\d{1,2}_)?(?P<letter>[sdczhi])\d{0,6}(?P<what>gemm|fprop|dgrad|wgrad)_"
        ),
        "{kind} {dtype} {tile} {layout} (cutlass {sm})",
    ),
    # cutlass, python/cutlass_library/gemm_operation.py
    Symbol(
        re.compile(
            r"cutlass3x_sm(?P<number>\d{2,3})_(?:bst)?(?:tensorop|simt)_"
            r"(?P<letter>[sdczhi])\d{0,4}(?:x\d{1,4}x\d{1,4})?(?P<what>gemm|fprop|dgrad|wgrad)?_?"
            r"(?:(?P<operand>f8|bf16|f16|tf32|f32|f64|s8|i8)_)?"
        ),
        "{kind} {dtype} {tile} {layout} (cutlass {sm})",
    ),
    # cublas and cudnn, names in traces
    Symbol(
        re.compile(
            r"sm(?P<number>\d{2,3})_xmma_(?P<what>gemm|fprop|dgrad|wgrad)_"
            r"(?:implicit_gemm_)?(?:indexed_)?(?:interleaved_)?"
            r"(?P<operand>e4m3|e5m2|bf16|f16|tf32|f32|f64|i8|u8)"
        ),
        "{kind} {dtype} {tile} {layout} ({library} {sm})",
    ),
    # cublas, names in traces: the first letter is the type of A
    Symbol(
        re.compile(r"nvjet_(?:sm(?P<number>\d{2,3})_)?(?P<jet>[a-z]{3,6})_(?:mma_)?"),
        "gemm {dtype} {tile} {layout} (cublas nvjet {sm})",
    ),
    # cudnn, names in traces
    Symbol(
        re.compile(
            r"cudnn_generated_(?:fort|oss)_native_sdpa_sm(?P<number>\d{2,3})_flash_(?P<way>[fb])prop_"
            r"(?:wgmma_)?(?P<operand>bf16|f16|e4m3|e5m2)?"
        ),
        "flash {way} {dtype} {tile} (cudnn {sm})",
    ),
    # pytorch, ATen/native/transformers/cuda/mem_eff_attention/kernels/generate_kernels.py
    Symbol(
        re.compile(r"fmha_cutlass(?P<way>[FB])_(?P<operand>bf16|f16|f32)_"),
        "attention {way} {dtype} {tile} (mem-efficient {sm})",
    ),
    # nccl, src/device/symmetric/generate.py
    Symbol(
        re.compile(r"ncclSymk?(?:Dev)?Kernel_(?P<nccl>[A-Za-z]{2,20})_(?P<words>\w{1,60})"),
        "nccl {nccl} symmetric {words}",
    ),
    # nccl, src/device/generate.py
    Symbol(
        re.compile(r"nccl(?:Dev)?Kernel_(?P<nccl>[A-Za-z]{2,20})"),
        "nccl {nccl} {algorithm} {reduction} {dtype}",
    ),
    # Tensile, Tensile/SolutionStructs.py and DataType.py
    Symbol(
        re.compile(
            r"(?:Custom_)?Cijk_(?P<a>Ailk|Alik)_(?P<b>Bljk|Bjlk)_(?P<tensile>[A-Z0-9]{1,6})_"
        ),
        "gemm {dtype} {tile} {layout} (tensile {gfx})",
    ),
    # cupy, cupy/_core/_kernel.pyx
    Symbol(
        re.compile(
            r"cupy_(?P<words>[a-z0-9_]{1,40}?)__(?:\w{0,100}_)?"
            r"(?P<cupy>(?:float|u?int|complex|bool)\d{0,3})\Z"
        ),
        "cupy {words}<{cupy}>",
    ),
)


def _index() -> tuple[dict[str, list[Template]], list[Template]]:
    exact: dict[str, list[Template]] = {}
    starts: list[Template] = []
    for row in TEMPLATES:
        if row.name.endswith("*"):
            starts.append(row)
        else:
            exact.setdefault(row.name, []).append(row)
    return exact, starts


_EXACT, _STARTS = _index()


@functools.lru_cache(maxsize=4096)
def template_of(scope: str, name: str) -> Template | None:
    """Return the row of a function, the first one in the table; None for an unknown function."""
    for row in _EXACT.get(name, ()):
        if row.scope in scope:
            return row
    for row in _STARTS:
        if name.startswith(row.name[:-1]) and row.scope in scope:
            return row
    return None
