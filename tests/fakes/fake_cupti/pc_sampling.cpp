#include "pc_sampling.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <tuple>
#include <utility>

#include "driver/cupti/cupti_pc_sampling.h"
#include "library.h"

using namespace fake;

namespace {

// A kernel has this many instructions; its samples go to them in turn, and to the reasons in turn.
constexpr uint64_t kInstructions = 8;
constexpr uint64_t kInstructionBytes = 16;
constexpr uint64_t kSamplesPerPeriod = 4; // of the one kernel that runs, at 1 GHz

constexpr const char *kReasons[] = {
    "smsp__pcsamp_sample_buffer_full", // no reason of a stall
    "smsp__pcsamp_warps_issue_stalled_wait",
    "smsp__pcsamp_warps_issue_stalled_wait_not_issued",
    "smsp__pcsamp_warps_issue_stalled_long_scoreboard",
    "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued",
    "smsp__pcsamp_warps_issue_stalled_selected",
    "smsp__pcsamp_warps_issue_stalled_not_selected",
    "smsp__pcsamp_warps_issue_stalled_gmma", // none of upstream's
};
constexpr uint32_t kFirstIndex = 3; // indices need not begin at 0

struct Pc {
  uint64_t crc;
  uint32_t function;
  uint64_t offset;
  const char *name;
  bool operator<(const Pc &other) const {
    return std::tie(crc, function, offset) < std::tie(other.crc, other.function, other.offset);
  }
};

struct Context {
  uint32_t period_log2 = 0;
  bool has_control = false;
  bool is_started = true;
  bool is_full = false;
  uint64_t drops = 0;
  uint64_t of_driver_kernels = 0;
  uint64_t total = 0;
  uint64_t dropped = 0;
  std::map<uint32_t, bool> wanted; ///< reasons, by index
  cupti::PcSamples *rest = nullptr;
  std::map<Pc, std::map<uint32_t, uint32_t>> pcs; ///< -> index of a reason -> samples
};

struct Sampling {
  std::mutex mutex;
  std::map<uint32_t, Context> contexts;
  std::map<std::string, uint64_t> modules; ///< kernel -> CRC
  std::map<std::string, uint32_t> functions;
  std::set<uint64_t> unknown; ///< CRCs of modules that CUPTI did not see
  bool was_used = false;
  uint64_t collisions = 0;
  size_t most_pcs = 0; ///< of one answer; 0: as many as fit
  uint64_t made = 0;   ///< with a reason of a stall that says why, dropped ones left out
  uint64_t made_not_issued = 0;
  uint64_t turn = 0;
};

Sampling &sampling() {
  static auto *instance = new Sampling;
  return *instance;
}

/// The size of 12.4 and later has a correlation id.
size_t pc_bytes() {
  return version() >= cupti::kVersion12_4 ? sizeof(cupti::PcData)
                                          : offsetof(cupti::PcData, correlation_id);
}

cupti::PcData &pc_at(const cupti::PcSamples &samples, size_t index) {
  return *reinterpret_cast<cupti::PcData *>(reinterpret_cast<char *>(samples.pcs) +
                                            index * pc_bytes());
}

bool is_not_issued(uint32_t index) {
  return std::string(kReasons[index - kFirstIndex]).ends_with("_not_issued");
}

Context *find(void *context) {
  auto found = sampling().contexts.find(static_cast<uint32_t>(id_of(context)));
  return found == sampling().contexts.end() ? nullptr : &found->second;
}

/// The real library may deadlock then: it takes its own lock before the driver's, and a launch
/// takes them the other way round.
void note_collision() { sampling().collisions += is_others_call_open() ? 1 : 0; }

void give(Context &from, cupti::PcSamples &to, size_t most) {
  size_t count = 0;
  while (!from.pcs.empty() && count < std::min(most, to.most_pcs)) {
    auto &[pc, stalls] = *from.pcs.begin();
    cupti::PcData &data = pc_at(to, count++);
    data.cubin_crc = pc.crc;
    data.function_index = pc.function;
    data.offset = pc.offset;
    data.function_name = const_cast<char *>(pc.name);
    data.stall_reason_count = 0;
    for (const auto &[index, samples] : stalls)
      data.stall_reasons[data.stall_reason_count++] = {index, samples};
    from.pcs.erase(from.pcs.begin());
  }
  to.pc_count = count;
  to.remaining_pcs = from.pcs.size();
  to.total = std::exchange(from.total, 0);
  to.dropped = std::exchange(from.dropped, 0);
  to.of_driver_kernels = std::exchange(from.of_driver_kernels, 0);
}

int set(Context &context, const cupti::PcSetting &setting) {
  switch (setting.attribute) {
  case cupti::kPcPeriod:
    if (setting.number < cupti::kSmallestPeriodLog2 || setting.number > cupti::kLargestPeriodLog2)
      return cupti::kErrorInvalidOperation;
    context.period_log2 = setting.number;
    return cupti::kSuccess;
  case cupti::kPcStallReasons:
    for (size_t i = 0; i < setting.stall_reasons.count; ++i)
      context.wanted[setting.stall_reasons.indices[i]] = true;
    return cupti::kSuccess;
  case cupti::kPcStartStopControl:
    context.has_control = setting.number != 0;
    context.is_started = !context.has_control;
    return cupti::kSuccess;
  case cupti::kPcBuffer:
    context.rest = setting.buffer;
    return cupti::kSuccess;
  case cupti::kPcCollectionMode:
    return setting.mode == cupti::kPcContinuous ? cupti::kSuccess : cupti::kErrorInvalidOperation;
  default:
    return cupti::kSuccess;
  }
}

} // namespace

namespace fake {

bool is_sampled() {
  std::lock_guard lock(sampling().mutex);
  return !sampling().contexts.empty();
}

void sample_kernel(const Kernel &kernel) {
  Sampling &self = sampling();
  std::lock_guard lock(self.mutex);
  auto found = self.contexts.find(kernel.context);
  if (found == self.contexts.end() || !found->second.is_started || found->second.is_full)
    return;
  Context &context = found->second;
  uint64_t count = kSamplesPerPeriod * kernel.duration_ns >> context.period_log2;
  auto module = self.modules.find(kernel.name);
  uint64_t crc = module == self.modules.end() ? 1 : module->second;
  if (self.unknown.contains(crc)) {
    context.total += count;
    context.of_driver_kernels += count;
    return;
  }
  auto function = static_cast<uint32_t>(self.functions.size());
  function = self.functions.emplace(kernel.name, function).first->second;
  std::vector<uint32_t> reasons;
  for (const auto &[index, is_wanted] : context.wanted)
    reasons.push_back(index);
  for (uint64_t i = 0; i < count && !reasons.empty(); ++i) {
    ++context.total;
    if (context.drops != 0) {
      --context.drops;
      ++context.dropped;
      continue;
    }
    uint64_t turn = self.turn++;
    uint32_t reason = reasons[turn % reasons.size()];
    Pc pc{crc, function, turn / 3 % kInstructions * kInstructionBytes, kernel.name};
    ++context.pcs[pc][reason];
    ++(is_not_issued(reason) ? self.made_not_issued : self.made);
  }
}

void note_use() {
  std::lock_guard lock(sampling().mutex);
  sampling().was_used = true;
}

void module_loaded(uint64_t crc) {
  auto is_kind_on = [](cupti::ActivityKind kind) {
    return library().kinds[static_cast<size_t>(kind)].load();
  };
  bool is_seen = is_kind_on(cupti::kKindKernel) || is_kind_on(cupti::kKindConcurrentKernel);
  std::lock_guard lock(sampling().mutex);
  if (sampling().was_used && !is_seen && sampling().contexts.empty())
    sampling().unknown.insert(crc);
}

void look_at_all_modules() {
  std::lock_guard lock(sampling().mutex);
  sampling().unknown.clear();
  sampling().was_used = false;
}

void forget_samples_of_module(uint64_t crc) {
  std::lock_guard lock(sampling().mutex);
  for (auto &[id, context] : sampling().contexts)
    std::erase_if(context.pcs, [&](const auto &item) { return item.first.crc == crc; });
}

void forget_samples_of_context(uint32_t context) {
  std::lock_guard lock(sampling().mutex);
  sampling().contexts.erase(context);
}

} // namespace fake

// Control.
FAKE_EXPORT void fake_cupti_pc_module(const char *kernel, uint64_t crc) {
  std::lock_guard lock(sampling().mutex);
  sampling().modules[kernel] = crc;
}

FAKE_EXPORT void fake_cupti_pc_answer(size_t most_pcs) {
  std::lock_guard lock(sampling().mutex);
  sampling().most_pcs = most_pcs;
}

FAKE_EXPORT void fake_cupti_pc_drop(uint32_t context, uint64_t samples) {
  std::lock_guard lock(sampling().mutex);
  sampling().contexts[context].drops += samples;
}

FAKE_EXPORT void fake_cupti_pc_driver_kernel(uint32_t context, uint64_t samples) {
  std::lock_guard lock(sampling().mutex);
  sampling().contexts[context].of_driver_kernels += samples;
  sampling().contexts[context].total += samples;
}

FAKE_EXPORT void fake_cupti_pc_overrun(uint32_t context) {
  std::lock_guard lock(sampling().mutex);
  sampling().contexts[context].is_full = true;
}

FAKE_EXPORT uint32_t fake_cupti_pc_period(uint32_t context) {
  std::lock_guard lock(sampling().mutex);
  auto found = sampling().contexts.find(context);
  return found == sampling().contexts.end() ? 0 : found->second.period_log2;
}

FAKE_EXPORT uint64_t fake_cupti_pc_waiting() {
  std::lock_guard lock(sampling().mutex);
  uint64_t waiting = 0;
  for (const auto &[id, context] : sampling().contexts)
    waiting += context.pcs.size();
  return waiting;
}

FAKE_EXPORT uint64_t fake_cupti_pc_collisions() {
  std::lock_guard lock(sampling().mutex);
  return sampling().collisions;
}

FAKE_EXPORT uint64_t fake_cupti_pc_made(int not_issued) {
  std::lock_guard lock(sampling().mutex);
  return not_issued != 0 ? sampling().made_not_issued : sampling().made;
}

// Entry points.
#define FAULT(name)                                                                                \
  static EntryPoint entry_point(#name);                                                            \
  if (const int code = entry_point.called(); code != 0)                                            \
  return code

static void break_captures() {
  int were_open = 0;
  fake_cupti_break_captures(&were_open);
}

FAKE_EXPORT int cuptiPCSamplingEnable(cupti::PcContextParameters *parameters) {
  FAULT(cuptiPCSamplingEnable);
  break_captures(); // it waits for the device
  std::lock_guard lock(sampling().mutex);
  note_collision();
  if (find(parameters->context))
    return cupti::kErrorInvalidOperation;
  sampling().contexts.try_emplace(static_cast<uint32_t>(id_of(parameters->context)));
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiPCSamplingDisable(cupti::PcContextParameters *parameters) {
  FAULT(cuptiPCSamplingDisable);
  break_captures(); // it waits for the device
  std::lock_guard lock(sampling().mutex);
  note_collision();
  Context *context = find(parameters->context);
  if (!context)
    return cupti::kErrorInvalidOperation;
  if (context->rest)
    give(*context, *context->rest, context->rest->most_pcs);
  sampling().contexts.erase(static_cast<uint32_t>(id_of(parameters->context)));
  return cupti::kSuccess;
}

static int control(cupti::PcContextParameters *parameters, bool starts) {
  std::lock_guard lock(sampling().mutex);
  note_collision();
  Context *context = find(parameters->context);
  if (!context || !context->has_control || context->is_started == starts)
    return cupti::kErrorInvalidOperation;
  context->is_started = starts;
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiPCSamplingStart(cupti::PcContextParameters *parameters) {
  FAULT(cuptiPCSamplingStart);
  break_captures(); // it waits for the device
  return control(parameters, true);
}

FAKE_EXPORT int cuptiPCSamplingStop(cupti::PcContextParameters *parameters) {
  FAULT(cuptiPCSamplingStop);
  break_captures(); // it waits for the device
  return control(parameters, false);
}

FAKE_EXPORT int cuptiPCSamplingGetData(cupti::PcGetDataParameters *parameters) {
  FAULT(cuptiPCSamplingGetData);
  std::lock_guard lock(sampling().mutex);
  Context *context = find(parameters->context);
  if (!context)
    return cupti::kErrorInvalidOperation;
  if (context->is_full) {
    parameters->samples->is_hardware_buffer_full = 1;
    return cupti::kErrorOutOfMemory;
  }
  size_t most = sampling().most_pcs;
  give(*context, *parameters->samples, most == 0 ? parameters->samples->most_pcs : most);
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiPCSamplingGetNumStallReasons(cupti::PcNumStallReasonsParameters *parameters) {
  FAULT(cuptiPCSamplingGetNumStallReasons);
  *parameters->count = std::size(kReasons);
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiPCSamplingGetStallReasons(cupti::PcStallReasonsParameters *parameters) {
  FAULT(cuptiPCSamplingGetStallReasons);
  for (uint32_t i = 0; i < parameters->count; ++i) {
    parameters->indices[i] = kFirstIndex + i;
    std::snprintf(parameters->names[i], cupti::kStallReasonNameBytes, "%s", kReasons[i]);
  }
  return cupti::kSuccess;
}

FAKE_EXPORT int
cuptiPCSamplingSetConfigurationAttribute(cupti::PcConfigurationParameters *parameters) {
  FAULT(cuptiPCSamplingSetConfigurationAttribute);
  std::lock_guard lock(sampling().mutex);
  Context *context = find(parameters->context);
  if (!context)
    return cupti::kErrorInvalidOperation;
  for (size_t i = 0; i < parameters->setting_count; ++i)
    if (int result = set(*context, parameters->settings[i]); result != cupti::kSuccess)
      return result;
  return cupti::kSuccess;
}

/// Two instructions are a line; a function whose name begins with "nolines" has none.
FAKE_EXPORT int cuptiGetSassToSourceCorrelation(cupti::SassToSourceParameters *parameters) {
  FAULT(cuptiGetSassToSourceCorrelation);
  if (parameters->cubin == nullptr || parameters->cubin_size == 0)
    return cupti::kErrorInvalidParameter;
  if (std::string(parameters->function).starts_with("nolines"))
    return cupti::kErrorUnknown;
  parameters->line = static_cast<uint32_t>(10 + parameters->offset / (2 * kInstructionBytes));
  parameters->file = strdup("kernels.py");
  parameters->folder = strdup("/src");
  return cupti::kSuccess;
}
