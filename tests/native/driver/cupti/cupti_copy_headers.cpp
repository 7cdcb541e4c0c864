// cupti_abi.h names every call of the driver that copies or sets memory.
//
// Compiled, never run, by test_vendor_headers.py, as cupti_headers.cpp is.
#include "driver/cupti/cupti_abi.h"

#include <cuda.h>

#include <cupti.h>

using namespace proton::cupti;

// Names that some versions of the header lack are left out of this list.
constexpr int kVendorCopyCalls[] = {CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D8Async,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D16Async,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D32Async,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemsetD8_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemsetD16_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemsetD32_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D8_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D16_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D32_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoD_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyAtoH_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyAtoHAsync_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyAtoD_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoA_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyAtoA_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpy2D_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DUnaligned_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DAsync_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpy3D_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DAsync_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoA_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoAAsync_v2,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpy,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeer,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeerAsync,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DPeer,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DPeerAsync,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2_ptds,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2_ptds,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoD_v2_ptds,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoA_v2_ptds,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyAtoD_v2_ptds,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoA_v2_ptds,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyAtoH_v2_ptds,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyAtoA_v2_ptds,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpy2D_v2_ptds,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DUnaligned_v2_ptds,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpy3D_v2_ptds,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpy_ptds,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeer_ptds,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DPeer_ptds,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemsetD8_v2_ptds,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemsetD16_v2_ptds,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemsetD32_v2_ptds,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D8_v2_ptds,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D16_v2_ptds,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D32_v2_ptds,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync_ptsz,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoAAsync_v2_ptsz,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyAtoHAsync_v2_ptsz,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2_ptsz,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2_ptsz,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2_ptsz,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DAsync_v2_ptsz,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DAsync_v2_ptsz,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeerAsync_ptsz,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DPeerAsync_ptsz,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async_ptsz,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async_ptsz,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async_ptsz,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D8Async_ptsz,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D16Async_ptsz,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D32Async_ptsz,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyBatchAsync,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpyBatchAsync_ptsz,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DBatchAsync,
                                    CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DBatchAsync_ptsz};
constexpr bool is_copy_call(int cbid) {
  for (uint32_t call : kCopyCalls)
    if (static_cast<int>(call) == cbid)
      return true;
  return false;
}
constexpr bool all_are_copy_calls() {
  for (int cbid : kVendorCopyCalls)
    if (!is_copy_call(cbid))
      return false;
  return true;
}
static_assert(all_are_copy_calls());
