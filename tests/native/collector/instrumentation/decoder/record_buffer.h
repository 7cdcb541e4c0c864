// Builds profile buffers byte by byte, as kernels write them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "collector/instrumentation/decoder/host_decoder.h"

namespace buffers {

struct Record {
  uint32_t scope = 0;
  bool is_end = false;
  uint64_t clock = 0;
  bool is_async = false;
};

inline Record start(uint32_t scope, uint64_t clock) { return {scope, false, clock}; }
inline Record end(uint32_t scope, uint64_t clock) { return {scope, true, clock}; }

inline uint64_t encoded(const Record &record) {
  uint64_t tag = uint64_t{record.is_end} << proton::kEndBit |
                 uint64_t{record.scope} << proton::kScopeShift |
                 uint64_t{record.is_async} << proton::kAsyncBit |
                 (record.clock >> 32 & proton::kClockHighMask);
  return record.clock << 32 | tag;
}

template <typename Number> void put(std::vector<std::byte> &block, size_t at, Number number) {
  std::memcpy(block.data() + at, &number, sizeof number);
}

struct Program {
  uint32_t number = 0;
  uint32_t processor = 0;
  uint64_t init_ns = 1000;
  uint64_t pre_final_ns = 3000;
  uint64_t post_final_ns = 3100;
  std::vector<std::vector<Record>> segments; ///< in the order of the warps that record
};

// The segments hold as many records as the layout's block has room for, capped by `slots`.
inline std::vector<std::byte> block(const proton::BufferLayout &layout, const Program &program,
                                    uint32_t slots) {
  std::vector<std::byte> bytes(layout.scratch_bytes);
  put(bytes, proton::kPreambleAt, proton::kBlockPreamble);
  put(bytes, proton::kProgramAt, program.number);
  put(bytes, proton::kProcessorAt, program.processor);
  put(bytes, proton::kCapacityAt, slots * proton::kRecordBytes * layout.segments());
  put(bytes, proton::kInitAt, program.init_ns);
  put(bytes, proton::kPreFinalAt, program.pre_final_ns);
  put(bytes, proton::kPostFinalAt, program.post_final_ns);
  for (uint32_t segment = 0; segment < program.segments.size(); ++segment) {
    const std::vector<Record> &records = program.segments[segment];
    auto words = static_cast<uint32_t>(records.size() * proton::kRecordWords);
    put(bytes, proton::kBlockHeaderBytes + size_t{4} * layout.warp_of(segment), words);
    for (size_t i = 0; i < records.size(); ++i) {
      size_t slot = size_t{segment} * slots + i % slots;
      put(bytes, layout.data_at() + slot * proton::kRecordBytes, encoded(records[i]));
    }
  }
  return bytes;
}

} // namespace buffers
