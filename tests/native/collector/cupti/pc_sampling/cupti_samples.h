// Sessions that sample program counters on the double of libcupti, and their results.
#pragma once

#include <map>
#include <sstream>
#include <string>

#include "collector/cupti/control/cupti_session.h"

namespace proton {

constexpr uint32_t kPeriodLog2 = 5; // the double makes 4 samples of 32 ns: 125 of a kernel of 1 us

inline CuptiOptions sampling_options(PcSamplingMode mode = PcSamplingMode::kContinuous) {
  CuptiOptions options = double_options();
  options.pc_sampling.mode = mode;
  options.pc_sampling.period_log2 = kPeriodLog2;
  return options;
}

/// The samples that the double made since the construction.
class MadeSamples {
public:
  uint64_t stalled() const { return fake_cupti_pc_made(0) - stalled_; }
  uint64_t not_issued() const { return fake_cupti_pc_made(1) - not_issued_; }

private:
  uint64_t stalled_ = fake_cupti_pc_made(0);
  uint64_t not_issued_ = fake_cupti_pc_made(1);
};

/// A metric of every node that has it, by path.
inline std::map<std::string, int64_t> values(const CuptiSession &session, const char *metric,
                                             uint32_t phase = 0) {
  std::map<std::string, int64_t> found;
  std::istringstream text(session.tree(metric, phase));
  for (std::string item; text >> item;) {
    size_t at = item.rfind('=');
    found[item.substr(0, at)] += std::stoll(item.substr(at + 1));
  }
  return found;
}

/// Its sum over the nodes whose path has this prefix.
inline int64_t sum(const CuptiSession &session, const char *metric, const std::string &path = "",
                   uint32_t phase = 0) {
  int64_t all = 0;
  for (const auto &[each, value] : values(session, metric, phase))
    if (each.starts_with(path))
      all += value;
  return all;
}

inline void run(const char *kernel, uint64_t duration_ns = 1000, uint32_t context = 1) {
  FakeLaunch launch;
  launch.name = kernel;
  launch.duration_ns = duration_ns;
  launch.context = context;
  fake_cupti_launch_as(&launch);
}

} // namespace proton
