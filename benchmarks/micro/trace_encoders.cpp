// What the encoders of timelines cost: `make bench-native`.
//
// Encodes the same events in both formats, flushed as often as while a program runs, and prints
// bytes and nanoseconds per event, and the whole of each file. An argument names a folder that
// keeps the files.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "record/device.h"
#include "writer/timeline/trace_encoder.h"

using namespace proton;

namespace {

constexpr int kRounds = 5;
constexpr size_t kKernels = 120'000;
constexpr size_t kKernelsPerLayer = 10;
constexpr size_t kLayers = 12;
constexpr size_t kEventsPerBatch = 8192;
constexpr size_t kFlushBytes = size_t{4} << 20;

struct Mix {
  const char *name;
  bool has_launches;
  bool has_scopes;
  bool has_counters;
};
constexpr Mix kMixes[] = {{"kernels", false, false, false},
                          {"kernels, launches, scopes, flows", true, true, false},
                          {"kernels, launches, scopes, flows, counters", true, true, true}};

// Time of this thread on processors: what others do there matters less.
int64_t thread_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

class Random {
public:
  int64_t below(int64_t bound) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state_ >> 33) % static_cast<uint64_t>(bound));
  }

private:
  uint64_t state_ = 1;
};

/// The steps of a transformer: launches run ahead of a stream that is always busy.
class Program {
public:
  explicit Program(const Mix &mix) : mix_(mix) {
    device_ = DeviceTable::instance().find_or_add("CUDA", 0);
    batches_.emplace_back();
    EventBatch &first = batches_.back();
    first.threads.push_back({0, 4711, "MainThread"});
    add_nodes(first.nodes);
    for (size_t kernel = 0; kernel < kKernels; ++kernel)
      add_kernel(kernel);
    close_scopes(true);
  }

  const std::vector<EventBatch> &batches() const { return batches_; }
  size_t events() const { return events_; }

private:
  void add_nodes(std::vector<EventNode> &nodes) {
    nodes.push_back({0, Name("step"), FrameKind::kScope});
    for (size_t layer = 0; layer < kLayers; ++layer) {
      nodes.push_back({1, Name("layer " + std::to_string(layer)), FrameKind::kScope});
      auto parent = static_cast<uint32_t>(nodes.size());
      for (size_t kernel = 0; kernel < kKernelsPerLayer; ++kernel) {
        std::string name = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_" +
                           std::to_string(kernel) + "IfEESt5arrayIPcLm3EEEEviT0_T1_";
        nodes.push_back({parent, Name(name), FrameKind::kKernel});
      }
    }
  }
  void add(const TimelineEvent &event) {
    if (batches_.back().events.size() >= kEventsPerBatch)
      batches_.emplace_back();
    batches_.back().events.push_back(event);
    ++events_;
  }
  void close_scopes(bool is_end) {
    if (!mix_.has_scopes || layer_start_ns_ == 0)
      return;
    add({.start_ns = layer_start_ns_, .end_ns = host_ns_, .node = layer_node_});
    if (is_end || layer_ == 0)
      add({.start_ns = step_start_ns_, .end_ns = host_ns_ + 100, .node = 1});
  }
  void open_scopes() {
    host_ns_ += 2000;
    if (layer_ == 0)
      step_start_ns_ = host_ns_ - 200;
    layer_start_ns_ = host_ns_;
  }
  void add_kernel(size_t kernel) {
    if (kernel % kKernelsPerLayer == 0) {
      layer_ = kernel / kKernelsPerLayer % kLayers;
      close_scopes(false);
      open_scopes();
      layer_node_ = static_cast<uint32_t>(2 + layer_ * (kKernelsPerLayer + 1));
    }
    TimelineEvent work;
    work.kind = EventKind::kKernel;
    work.device = device_;
    work.track = 7;
    work.node = layer_node_ + 1 + static_cast<uint32_t>(kernel % kKernelsPerLayer);
    work.launch = mix_.has_launches ? kernel + 1 : 0;
    host_ns_ += 900 + random_.below(600);
    if (mix_.has_launches) {
      TimelineEvent launch = work;
      launch.kind = EventKind::kLaunch;
      launch.device = -1;
      launch.track = 0;
      launch.start_ns = host_ns_;
      launch.end_ns = host_ns_ += 1500 + random_.below(1200);
      add(launch);
    }
    // Times of GPUs are multiples of 32 ns.
    work.start_ns = std::max(stream_ns_ + 800 + 32 * random_.below(20), host_ns_ + 1000) / 32 * 32;
    work.end_ns = stream_ns_ = work.start_ns +
                               1024 * (1 + static_cast<int64_t>(kernel % kKernelsPerLayer)) +
                               32 * random_.below(24);
    add(work);
    if (mix_.has_counters && kernel % 100 == 0)
      batches_.back().counters.push_back(
          {host_ns_, device_, Name("SM clock (MHz)"), 1500.0 + static_cast<double>(kernel % 400)});
  }

  const Mix mix_;
  Random random_;
  std::vector<EventBatch> batches_;
  size_t events_ = 0;
  int32_t device_ = 0;
  int64_t host_ns_ = 1'000'000'000;
  int64_t stream_ns_ = 0;
  int64_t step_start_ns_ = 0;
  int64_t layer_start_ns_ = 0;
  size_t layer_ = 0;
  uint32_t layer_node_ = 2;
};

struct Result {
  size_t bytes = 0;
  int64_t ns = INT64_MAX;
  std::string file;
};

Result encode(TraceFormat format, const Program &program) {
  TraceFacts facts;
  facts.unix_offset_ns = 1'790'000'000'000'000'000;
  facts.start_ns = 999'000'000;
  facts.process_id = 4711;
  facts.process_name = "train.py";
  facts.host = "gpu7";
  facts.rank = 3;
  facts.world_size = 8;
  Result result;
  for (int round = 0; round < kRounds; ++round) {
    auto encoder = make_trace_encoder(format);
    std::string out;
    int64_t start_ns = thread_ns();
    encoder->begin(facts, out);
    size_t flushed = 0;
    for (const EventBatch &batch : program.batches()) {
      encoder->add(batch, out);
      if (out.size() - flushed < kFlushBytes)
        continue;
      encoder->flush(out);
      flushed = out.size();
    }
    encoder->end({}, out);
    result.ns = std::min(result.ns, thread_ns() - start_ns);
    result.bytes = out.size();
    result.file = std::move(out);
  }
  return result;
}

} // namespace

int main(int argc, char **argv) {
  DeviceTable::instance().find_or_add("CUDA", 0);
  int number = 0;
  for (const Mix &mix : kMixes) {
    Program program(mix);
    std::printf("%zu %s (%zu events)\n", kKernels, mix.name, program.events());
    for (TraceFormat format : {TraceFormat::kPerfetto, TraceFormat::kChrome}) {
      bool is_perfetto = format == TraceFormat::kPerfetto;
      Result result = encode(format, program);
      auto events = static_cast<double>(program.events());
      std::printf("  %-8s %6.2f bytes/event %7.1f ns/event %9.2f MB %7.1f ms\n",
                  is_perfetto ? "Perfetto" : "Chrome", static_cast<double>(result.bytes) / events,
                  static_cast<double>(result.ns) / events, static_cast<double>(result.bytes) / 1e6,
                  static_cast<double>(result.ns) / 1e6);
      if (argc > 1) {
        std::string name = std::string(argv[1]) + "/mix" + std::to_string(number) +
                           (is_perfetto ? ".pftrace" : ".chrome_trace");
        std::ofstream(name, std::ios::binary) << result.file;
      }
    }
    ++number;
  }
  return 0;
}
