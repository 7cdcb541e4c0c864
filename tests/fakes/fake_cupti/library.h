// The double of libcupti from inside: its state, the way to callbacks and the way to records.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "control.h"
#include "driver/cuda/cuda_abi.h"
#include "driver/cupti/cupti_library.h"
#include "driver/cupti/cupti_records.h"
#include "handles.h"

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace fake {

namespace cuda = proton::cuda;
namespace cupti = proton::cupti;

inline constexpr int kDomains = 7;
inline constexpr uint32_t kCbids = 1024;
inline constexpr int kKinds = 64;

/// Completed buffers go to the subscriber from a worker thread, as those of libcupti do.
class Delivery {
public:
  void register_callbacks(cupti::BufferRequested requested, cupti::BufferCompleted completed);
  /// Appends one record, requesting a buffer or completing the full one where needed.
  void append(const void *record, size_t bytes);
  /// Delivers everything; the rest on the calling thread.
  void flush();
  /// Completes the present buffer on the worker thread and waits for it.
  void complete_on_worker();
  /// Waits until the worker has delivered everything.
  void drain();
  void set_period(uint32_t milliseconds);
  void drop(uint64_t records);
  uint64_t take_dropped() { return dropped_.exchange(0); }
  uint64_t outstanding() const { return outstanding_.load(); }

private:
  struct Buffer {
    uint8_t *bytes;
    size_t size;
    size_t used;
  };

  void run();
  void hand_over(const Buffer &buffer);
  void deliver(const Buffer &buffer);
  bool take(Buffer &buffer);

  std::mutex append_;
  Buffer current_{nullptr, 0, 0};
  std::atomic<cupti::BufferRequested> requested_{nullptr};
  std::atomic<cupti::BufferCompleted> completed_{nullptr};
  std::atomic<uint64_t> dropped_{0};
  std::atomic<uint64_t> outstanding_{0};

  std::mutex queue_mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::deque<Buffer> queue_;
  uint32_t period_ms_ = 0;
  bool is_busy_ = false;
  bool is_started_ = false;
};

struct Library {
  Library();

  std::atomic<cupti::CallbackFunction> callback{nullptr};
  std::atomic<void *> user{nullptr};
  std::atomic<bool> is_subscribed{false};
  std::atomic<bool> is_shared{false}; ///< the subscriber is one of several (V2)
  std::array<std::array<std::atomic<bool>, kCbids>, kDomains> enabled{};
  std::array<std::atomic<bool>, kKinds> kinds{};
  std::array<std::atomic<uint32_t>, kKinds> record_bytes{};
  std::atomic<uint32_t> correlation{1};
  std::atomic<uint64_t> clock_ns{1'000'000};
  std::atomic<bool> is_real_clock{false};
  std::atomic<cupti::function::TimestampSource> timestamp{nullptr};
  std::atomic<bool> is_any_held{false};
  std::atomic<bool> is_cuda_started{false};
  std::atomic<uint32_t> calls{0}; ///< of the driver, past their entry
  Delivery delivery;
  std::atomic<bool> other_is_shared{false};
  std::array<std::atomic<bool>, kKinds> other_kinds{};
  Delivery other_delivery;

  std::mutex mutex; ///< of everything below
  std::map<int, uint64_t> attributes;
  std::string other_subscriber;
  std::map<std::string, std::string> names;
  std::map<uint32_t, std::vector<std::vector<char>>> held; ///< records by context
};

Library &make_library();

inline Library &library() {
  static Library &instance = make_library();
  return instance;
}

uint32_t version();

/// What cuptiGetTimestamp answers.
void library_time(uint64_t &ns);
/// Time of the device for work of this duration; its begin.
uint64_t take_time(uint64_t duration_ns);

/// One entry point: counts its calls and knows which of them fail.
class EntryPoint {
public:
  explicit EntryPoint(const char *name);
  /// Counts a call; returns the code of its failure, or 0.
  int called();

private:
  const char *name_;
  std::atomic<uint64_t> calls_{0};
};

const char *intern(const char *name);
bool is_on(int domain, uint32_t cbid);

/// Calls the subscriber, if the callback is enabled.
void call_back(int domain, uint32_t cbid, const void *data);

/// One driver call: enter on construction, exit with `result` on destruction.
class DriverCall {
public:
  DriverCall(uint32_t cbid, const char *function, const void *parameters, uint32_t context);
  ~DriverCall();
  DriverCall(const DriverCall &) = delete;
  DriverCall &operator=(const DriverCall &) = delete;
  void enter(const char *symbol = nullptr);
  uint32_t correlation() const { return data_.correlation_id; }
  int result = cuda::kSuccess;

private:
  uint32_t cbid_;
  bool is_inside_ = false;
  uint64_t kept_ = 0; ///< 8 bytes that are the subscriber's
  cupti::CallbackData data_;
};

/// Whether another thread is between the callbacks of a driver call.
bool is_others_call_open();

/// Whether the subscriber or the other client gets records of this kind.
inline bool is_recorded(int kind) {
  const auto row = static_cast<size_t>(kind);
  return library().kinds[row].load(std::memory_order_relaxed) ||
         library().other_kinds[row].load(std::memory_order_relaxed);
}

/// Bytes of a record that is written field by field.
class RecordBytes {
public:
  RecordBytes(int kind, uint32_t context);
  template <typename T> RecordBytes &set(size_t offset, T value) {
    if (offset + sizeof value <= size_)
      std::memcpy(bytes_ + offset, &value, sizeof value);
    return *this;
  }
  /// Hands the record over, if its kind is enabled.
  void emit() const;

private:
  alignas(8) char bytes_[256];
  size_t size_;
  int kind_;
  uint32_t context_;
};

struct Kernel {
  const char *name;
  uint64_t duration_ns;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  uint32_t registers;
  uint32_t local_bytes;
};
void emit_kernel(const Kernel &kernel, uint32_t correlation, uint32_t graph_exec, uint64_t node);

/// Adds a node to the graph that `stream` is captured into. Returns false if it is not captured.
bool capture(const Kernel &kernel);

std::vector<char> cubin(uint64_t crc, size_t bytes);
uint64_t crc_of(const void *cubin, size_t bytes);

} // namespace fake
