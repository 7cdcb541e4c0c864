// A queue of records with one writer (the launching thread) and one reader (under a lock).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace proton {

/// Unbounded single-producer single-consumer queue of fixed chunks. Appending is a store and, once
/// per chunk, an allocation; it takes no lock.
template <typename Record> class RecordLog {
public:
  static constexpr uint32_t kChunkRecords = 512;
  static constexpr uint32_t kAhead = 4; ///< past the end it is harmless: only a hint

  RecordLog() : write_(new Chunk), read_(write_) {}
  ~RecordLog() {
    free_all(read_);
    free_all(spare_);
    free_all(used_up_.load(std::memory_order_relaxed));
  }
  RecordLog(const RecordLog &) = delete;
  RecordLog &operator=(const RecordLog &) = delete;

  /// Returns true when a chunk was filled, a hint that it is worth draining; a record that finds
  /// no memory is counted in `lost`. [writing thread]
  bool append(const Record &record) noexcept {
    uint32_t used = write_->used.load(std::memory_order_relaxed);
    if (used == kChunkRecords) {
      Chunk *next = fresh_chunk();
      if (!next) {
        lost.fetch_add(1, std::memory_order_relaxed);
        return true;
      }
      write_->next.store(next, std::memory_order_release);
      write_ = next;
      used = 0;
    }
    // The reader had these lines last; ask for those of coming records before they are needed.
    __builtin_prefetch(write_->records.data() + used + kAhead, 1);
    write_->records[used] = record;
    write_->used.store(used + 1, std::memory_order_release);
    return used + 1 == kChunkRecords;
  }

  /// Hands over every record appended before; later ones are left, so that a writer that is faster
  /// than the reader does not hold it for ever. [reader, under the reader's lock]
  template <typename Consume> void consume(Consume &&consume_record) {
    const Chunk *last = read_;
    while (const Chunk *next = last->next.load(std::memory_order_acquire))
      last = next;
    uint32_t used_of_last = last->used.load(std::memory_order_acquire);
    for (;;) {
      uint32_t used = read_ == last ? used_of_last : kChunkRecords;
      while (consumed_ < used)
        consume_record(read_->records[consumed_++]);
      Chunk *next = read_->next.load(std::memory_order_acquire);
      if (consumed_ < kChunkRecords || !next)
        return;
      bool is_last = read_ == last;
      give_back(read_);
      read_ = next;
      consumed_ = 0;
      if (is_last)
        return;
    }
  }

  std::atomic<uint64_t> lost{0}; ///< records that found no memory

private:
  struct Chunk {
    std::atomic<uint32_t> used{0};
    std::atomic<Chunk *> next{nullptr};
    std::array<Record, kChunkRecords> records;
  };

  // Chunks go round: an allocator that gets from one thread what another took is slow.
  static constexpr uint32_t kMaxSpare = 64;
  Chunk *fresh_chunk() noexcept {
    if (!spare_)
      spare_ = used_up_.exchange(nullptr, std::memory_order_acquire);
    if (!spare_)
      return new (std::nothrow) Chunk;
    Chunk *chunk = spare_;
    spare_ = chunk->next.load(std::memory_order_relaxed);
    chunk->next.store(nullptr, std::memory_order_relaxed);
    chunk->used.store(0, std::memory_order_relaxed);
    spare_count_.fetch_sub(1, std::memory_order_relaxed);
    return chunk;
  }
  void give_back(Chunk *chunk) noexcept {
    if (spare_count_.load(std::memory_order_relaxed) >= kMaxSpare) {
      delete chunk;
      return;
    }
    spare_count_.fetch_add(1, std::memory_order_relaxed);
    Chunk *next = used_up_.load(std::memory_order_relaxed);
    do
      chunk->next.store(next, std::memory_order_relaxed);
    while (!used_up_.compare_exchange_weak(next, chunk, std::memory_order_release,
                                           std::memory_order_relaxed));
  }
  static void free_all(Chunk *chunk) {
    while (chunk) {
      Chunk *next = chunk->next.load(std::memory_order_relaxed);
      delete chunk;
      chunk = next;
    }
  }

  // On lines of their own: a reader at work would take the writer's from it at every record.
  static constexpr size_t kLine = 64;
  alignas(kLine) Chunk *write_; ///< writer only
  Chunk *spare_ = nullptr;      ///< writer only: used-up chunks it took
  alignas(kLine) Chunk *read_;  ///< reader only
  uint32_t consumed_ = 0;       ///< reader only
  /// By the reader, for the writer to take all at once.
  alignas(kLine) std::atomic<Chunk *> used_up_{nullptr};
  std::atomic<uint32_t> spare_count_{0};
};

} // namespace proton
