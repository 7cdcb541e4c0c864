// A queue of records with one writer (the launching thread) and one reader (under a lock).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

namespace proton {

/// Unbounded single-producer single-consumer queue of fixed chunks. Appending is a store and, once
/// per chunk, an allocation; it takes no lock.
///   has_marks: the writer may add a number to the record that it appended last.
template <typename Record, bool has_marks = false> class RecordLog {
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
  bool append(const Record &record) noexcept { return emplace(record); }
  /// Same for what a record is made of, in its place: a copy on the way would cost a launch a
  /// sixth.
  template <typename Entry> [[gnu::always_inline]] bool emplace(const Entry &entry) noexcept {
    static_assert(std::is_trivially_copyable_v<Record>);
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
      if constexpr (has_marks)
        ++begun_;
    }
    // The reader had these lines last; ask for those of coming records before they are needed.
    __builtin_prefetch(write_->records.data() + used + kAhead, 1);
    new (&write_->records[used]) Record(entry);
    if constexpr (has_marks) {
      write_->marks[used].store(kNoMark, std::memory_order_relaxed);
      newest_ = used;
    }
    write_->used.store(used + 1, std::memory_order_release);
    return used + 1 == kChunkRecords;
  }

  /// Where the newest record stands, for `mark`. [writing thread]
  uint64_t newest() const noexcept {
    static_assert(has_marks);
    return begun_ * kChunkRecords + newest_;
  }
  /// Adds a number, not 0, to a record. False: the record was read before, or others filled its
  /// chunk. [writing thread]
  bool mark(uint64_t record, uint32_t number) noexcept {
    static_assert(has_marks);
    if (record / kChunkRecords != begun_)
      return false; // only the newest chunk is surely still ours
    uint32_t none = kNoMark;
    return write_->marks[record % kChunkRecords].compare_exchange_strong(none, number,
                                                                         std::memory_order_relaxed);
  }

  /// Sets the end of what `consume` hands over: the newest record. [reader, under its lock]
  void fix_end() {
    end_ = read_;
    while (Chunk *next = end_->next.load(std::memory_order_acquire))
      end_ = next;
    used_of_end_ = end_->used.load(std::memory_order_acquire);
  }

  /// Hands over the records up to the end that was fixed, `most` of them and counted down there; so
  /// a writer that is faster than the reader does not hold it for ever. True: all of them. A reader
  /// that takes a second argument is given a function that returns the record's mark, 0 without
  /// one; no mark is added after that. [reader, under its lock]
  template <typename Consume> bool consume(Consume &&consume_record, uint64_t &most) {
    for (;;) {
      uint32_t used = read_ == end_ ? used_of_end_ : kChunkRecords;
      for (; consumed_ < used; ++consumed_) {
        if (most == 0)
          return false;
        --most;
        hand_over(consume_record);
      }
      Chunk *next = read_->next.load(std::memory_order_acquire);
      if (consumed_ < kChunkRecords || !next)
        return true;
      bool is_last = read_ == end_;
      give_back(read_);
      read_ = next;
      consumed_ = 0;
      if (is_last) { // given back, so it is not the end any more
        end_ = read_;
        used_of_end_ = 0;
        return true;
      }
    }
  }
  /// Hands over every record appended before.
  template <typename Consume> void consume(Consume &&consume_record) {
    uint64_t most = ~uint64_t{0};
    fix_end();
    consume(consume_record, most);
  }

  std::atomic<uint64_t> lost{0}; ///< records that found no memory

private:
  struct Chunk {
    std::atomic<uint32_t> used{0};
    std::atomic<Chunk *> next{nullptr};
    std::array<Record, kChunkRecords> records;
    std::array<std::atomic<uint32_t>, has_marks ? kChunkRecords : 0> marks;
  };
  static constexpr uint32_t kNoMark = 0;
  static constexpr uint32_t kWasRead = ~0u;

  template <typename Consume> void hand_over(Consume &consume_record) {
    const Record &record = read_->records[consumed_];
    if constexpr (has_marks && !std::is_invocable_v<Consume, const Record &>) {
      auto take_mark = [&mark = read_->marks[consumed_]]() -> uint32_t {
        return mark.exchange(kWasRead, std::memory_order_relaxed);
      };
      consume_record(record, take_mark);
    } else {
      consume_record(record);
    }
  }

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
  uint64_t begun_ = 0;          ///< writer only: chunks before this one
  uint32_t newest_ = 0;         ///< writer only: position in its chunk
  alignas(kLine) Chunk *read_;  ///< reader only
  uint32_t consumed_ = 0;       ///< reader only
  Chunk *end_ = read_;          ///< reader only: of what it consumes
  uint32_t used_of_end_ = 0;    ///< reader only
  /// By the reader, for the writer to take all at once.
  alignas(kLine) std::atomic<Chunk *> used_up_{nullptr};
  std::atomic<uint32_t> spare_count_{0};
};

} // namespace proton
