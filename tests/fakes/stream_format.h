// A recorded stream of libcupti: one flat file, written by cupti_recorder and replayed by the
// double of libcupti. Little-endian; the reader in Python is tests/fakes/stream_file.py.
//
//   magic, then chunks: ChunkHead, `bytes` bytes of payload
//   kText    a string; strings are numbered from 0 in the order of their chunks
//   kFact    a string "key=value" about the machine or the workload
//   kCall    struct Call: one callback, or a mark of the workload (domain kMarkDomain)
//   kBuffer  struct Buffer, record_count sizes (uint32_t), the records' bytes; a pointer to a
//            string inside a record (names of kernels and devices) is 1 + its number, 0 for null
//
// Chunks stand in the order in which they happened.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stream {

inline constexpr char kMagic[8] = {'P', 'B', 'C', 'U', 'P', 'T', 'I', '1'};
enum Tag : uint32_t { kText = 1, kFact = 2, kCall = 3, kBuffer = 4 };
inline constexpr uint8_t kMarkDomain = 255;

struct ChunkHead {
  uint32_t tag;
  uint32_t bytes;
};

/// Missing strings have the number -1, missing ids are 0.
struct Call {
  uint8_t domain = 0;
  uint8_t site = 0;
  uint16_t thread = 0; ///< 0 is the first thread that was seen
  uint32_t cbid = 0;
  int64_t time_ns = 0; ///< CLOCK_MONOTONIC
  uint32_t correlation = 0;
  uint32_t context_uid = 0;
  int32_t function = -1; ///< string
  int32_t symbol = -1;   ///< string
  int32_t text = -1;     ///< string: NVTX message or mark
  int32_t result = 0;    ///< of a driver or runtime call, on exit
  uint32_t grid[3] = {0, 0, 0};
  uint32_t block[3] = {0, 0, 0};
  uint32_t shared_bytes = 0;
  uint32_t stream = 0; ///< number of the stream's handle, 0 for the default stream
  uint32_t graph = 0;
  uint32_t original_graph = 0;
  uint32_t graph_exec = 0;
  int32_t node_type = -1;
  uint64_t node = 0;
  uint64_t original_node = 0;
  uint64_t cubin_size = 0;
  uint64_t cubin_crc = 0;
  uint32_t module = 0;
  uint32_t stream_id = 0; ///< libcupti's, on exit of a launch; ~0: unknown
};
static_assert(sizeof(Call) == 128);

struct Buffer {
  uint32_t context = 0; ///< always 0 in buffers that are not per stream
  uint32_t stream = 0;
  uint64_t dropped = 0; ///< records, as reported for this buffer
  int64_t time_ns = 0;
  uint32_t record_count = 0;
  uint32_t bytes = 0; ///< of all records
};
static_assert(sizeof(Buffer) == 32);

} // namespace stream
