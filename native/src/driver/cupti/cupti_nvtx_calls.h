// NVTX calls as CUPTI reports them: their numbers, parameters and texts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace proton::cupti {

enum NvtxCbid : uint32_t {
  kNvtxRangePushA = 8,
  kNvtxRangePushW = 9,
  kNvtxRangePushEx = 10,
  kNvtxRangePop = 11,
  kNvtxDomainRangePushEx = 33,
  kNvtxDomainRangePop = 34,
  kNvtxDomainRegisterStringA = 39,
  kNvtxDomainRegisterStringW = 40,
};

struct NvtxData { // domain NVTX
  const char *function_name;
  const void *function_params;
  const void *return_value;
};

struct NvtxRangePushAParams {
  const char *message;
};
struct NvtxRangePushWParams {
  const wchar_t *message;
};
struct NvtxEventAttributes; // read by nvtx_event_offset
struct NvtxRangePushExParams {
  const NvtxEventAttributes *attributes;
};
/// Ranges of a domain: functions of NVTX 3 that name the domain before the usual parameters.
struct NvtxDomainRangePushExParams {
  void *domain;
  struct Core {
    const NvtxEventAttributes *attributes;
  } core;
};
struct NvtxDomainRangePopParams {
  void *domain;
};
/// Both kinds of text; the header of CUPTI says `char` for the wide one too.
struct NvtxDomainRegisterStringParams {
  void *domain;
  const void *text;
};
namespace nvtx_event_offset {
enum : size_t { kVersion = 0, kSize = 2, kMessageType = 32, kMessage = 40, kBytes = 48 };
}
enum NvtxMessageType : int32_t {
  kNvtxMessageAscii = 1,
  kNvtxMessageUnicode = 2,
  kNvtxMessageRegistered = 3,
};

} // namespace proton::cupti
