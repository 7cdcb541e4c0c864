// cupti_abi.h says what NVIDIA's headers say.
//
// Compiled, never run, by test_vendor_headers.py; no part of the native tests, because the headers
// need not be there.
#include "driver/cupti/cupti_abi.h"

#include <cupti.h>
#include <generated_nvtx_meta.h>

#define SAME(ours, theirs)                                                                         \
  static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs))
#define AT(ours, type, field) SAME(ours, offsetof(type, field))
#define START(type, field, vendor_type, vendor_field)                                              \
  SAME(offsetof(type, field), offsetof(vendor_type, vendor_field))
#define FIELD(type, field, vendor_type, vendor_field)                                              \
  SAME(sizeof(type), sizeof(vendor_type));                                                         \
  START(type, field, vendor_type, vendor_field)

using namespace proton::cupti;

SAME(kNvtxRangePushA, CUPTI_CBID_NVTX_nvtxRangePushA);
SAME(kNvtxRangePushW, CUPTI_CBID_NVTX_nvtxRangePushW);
SAME(kNvtxRangePushEx, CUPTI_CBID_NVTX_nvtxRangePushEx);
SAME(kNvtxRangePop, CUPTI_CBID_NVTX_nvtxRangePop);
SAME(kNvtxDomainRangePushEx, CUPTI_CBID_NVTX_nvtxDomainRangePushEx);
SAME(kNvtxDomainRangePop, CUPTI_CBID_NVTX_nvtxDomainRangePop);
SAME(kNvtxDomainRegisterStringA, CUPTI_CBID_NVTX_nvtxDomainRegisterStringA);
SAME(kNvtxDomainRegisterStringW, CUPTI_CBID_NVTX_nvtxDomainRegisterStringW);
FIELD(NvtxData, function_name, CUpti_NvtxData, functionName);
FIELD(NvtxData, function_params, CUpti_NvtxData, functionParams);
FIELD(NvtxData, return_value, CUpti_NvtxData, functionReturnValue);
FIELD(NvtxRangePushAParams, message, nvtxRangePushA_params, message);
FIELD(NvtxRangePushWParams, message, nvtxRangePushW_params, message);
FIELD(NvtxRangePushExParams, attributes, nvtxRangePushEx_params, eventAttrib);
FIELD(NvtxDomainRangePushExParams, domain, nvtxDomainRangePushEx_params, domain);
FIELD(NvtxDomainRegisterStringParams, domain, nvtxDomainRegisterStringA_params, domain);
FIELD(NvtxDomainRegisterStringParams, text, nvtxDomainRegisterStringA_params, string);
FIELD(NvtxDomainRegisterStringParams, text, nvtxDomainRegisterStringW_params, string);
FIELD(NvtxDomainRangePushExParams, core, nvtxDomainRangePushEx_params, core);
AT(nvtx_event_offset::kVersion, nvtxEventAttributes_t, version);
AT(nvtx_event_offset::kSize, nvtxEventAttributes_t, size);
AT(nvtx_event_offset::kMessageType, nvtxEventAttributes_t, messageType);
AT(nvtx_event_offset::kMessage, nvtxEventAttributes_t, message);
SAME(nvtx_event_offset::kBytes, sizeof(nvtxEventAttributes_t));
SAME(kNvtxMessageAscii, NVTX_MESSAGE_TYPE_ASCII);
SAME(kNvtxMessageUnicode, NVTX_MESSAGE_TYPE_UNICODE);
SAME(kNvtxMessageRegistered, NVTX_MESSAGE_TYPE_REGISTERED);
