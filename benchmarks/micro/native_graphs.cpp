// Replays of many CUDA graphs, on the double of libcupti: memory, file size and time per launch.
//
// native_graphs [GRAPHS [REPLAYS]]: 1 000 graphs of 20 kernels, captured in two scopes each, and
// 100 000 replays. Resident memory and the size of the file must not grow with the replays.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "aggregate/consumer/aggregator.h"
#include "collector/cupti/control/cupti_collector.h"
#include "context/thread/host_range.h"
#include "control.h"
#include "session/session_registry.h"
#include "support/clock.h"

using namespace proton;

namespace {

constexpr int kKernels = 20;
constexpr int kReports = 10;

void in_scope(const std::string &name, auto &&body) {
  open_scope(hashed(name), FrameKind::kScope, session_state());
  body();
  close_top(session_state());
}

uint32_t captured(int number) {
  fake_cupti_capture_begin(7);
  for (const char *half : {"first half", "second half"})
    in_scope("graph " + std::to_string(number % 50), [half] {
      in_scope(half, [] {
        for (int kernel = 0; kernel < kKernels / 2; ++kernel)
          fake_cupti_launch(kernel % 2 == 0 ? "add" : "multiply", 7);
      });
    });
  uint32_t graph = fake_cupti_capture_end(7);
  uint32_t executable = fake_cupti_graph_instantiate(graph);
  fake_cupti_graph_destroy(graph);
  return executable;
}

long resident_kb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:"))
      return std::atol(line.c_str() + 6);
  return 0;
}

} // namespace

int main(int count, char **arguments) {
  int graphs = count > 1 ? std::atoi(arguments[1]) : 1000;
  int replays = count > 2 ? std::atoi(arguments[2]) : 100'000;
  CuptiOptions options;
  options.candidates = {{std::getenv("PROTON_BENCH_CUPTI_LIB"), "benchmark", false}};
  SessionRegistry &sessions = SessionRegistry::instance();
  CuptiCollector collector(Aggregator::instance(), options);
  collector.start();
  std::shared_ptr<Session> session = sessions.add(ContextSource::kShadow, false);
  session->activate();
  std::vector<uint32_t> executables;
  for (int number = 0; number < graphs; ++number)
    executables.push_back(captured(number));
  std::printf("%10s %12s %12s %8s %14s\n", "replays", "resident KB", "file bytes", "open",
              "ns per launch");
  int step = replays / kReports;
  for (int done = 0; done < replays; done += step) {
    int64_t start_ns = monotonic_ns();
    for (int i = 0; i < step; ++i)
      in_scope("replay", [&] {
        fake_cupti_graph_launch(executables[static_cast<size_t>((done + i) % graphs)], 7);
      });
    double ns = static_cast<double>(monotonic_ns() - start_ns) / step;
    collector.flush();
    size_t bytes = session->encode(0, FileFormat::kProton).size();
    std::printf("%10d %12ld %12zu %8zu %14.0f\n", done + step, resident_kb(), bytes,
                Aggregator::Held().graphs().open_count(), ns);
  }
  RecordCounts counts = session->counts();
  std::printf("%llu launches, %llu recorded\n", static_cast<unsigned long long>(counts.launches),
              static_cast<unsigned long long>(counts.records));
  session->deactivate();
  collector.stop();
  session->remove();
  return counts.launches == counts.records ? 0 : 1;
}
