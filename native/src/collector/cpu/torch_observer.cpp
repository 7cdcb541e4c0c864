#include "collector/cpu/torch_observer.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>

#include "collector/cpu/collectives.h"
#include "collector/cpu/op_inputs.h"
#include "collector/cpu/op_stack.h"
#include "context/layer/layer_range.h"
#include "context/thread/self_cost.h"

namespace proton {
namespace {

// The layouts below are those of libtorch 2.x: at::ObserverContext has a virtual destructor, and
// at::RecordFunctionCallback is {start, end, sampling probability, one flag per RecordScope (ten),
// needs_inputs, needs_outputs, needs_ids}, 40 bytes.
struct ObserverContext {
  virtual ~ObserverContext() = default;
};
using StartCallback = std::unique_ptr<ObserverContext> (*)(const void *record_function);
using EndCallback = void (*)(const void *record_function, ObserverContext *context);

// How much of an operator of the backward pass a probe reads.
constexpr size_t kProbedWords = 48;

constexpr size_t kScopeFunction = 0, kScopeBackwardFunction = 1, kScopeUser = 7;
struct RecordFunctionCallback {
  StartCallback start = nullptr;
  EndCallback end = nullptr;
  double sampling_probability = 1.0;
  bool scopes_and_needs[16] = {};
};
static_assert(sizeof(RecordFunctionCallback) == 40);
constexpr size_t kNeedsInputs = 10;

// Where at::RecordFunction says what it is: behind the callbacks (room for four) and the thread.
constexpr size_t kScopeOffset = 96;
size_t scope_of(const void *record_function) noexcept {
  return static_cast<const unsigned char *>(record_function)[kScopeOffset];
}

using AddGlobalCallback = uint64_t (*)(RecordFunctionCallback);
using RemoveCallback = void (*)(uint64_t);
using IsEnabled = bool (*)();
using Enable = void (*)(bool);

AddGlobalCallback g_add = nullptr;
RemoveCallback g_remove = nullptr;
IsEnabled g_is_enabled = nullptr;
Enable g_enable = nullptr;
NameOf g_name_of = nullptr;
NodeNumbers g_numbers;

// Where an operator of the backward pass says which node it runs; 0: unknown.
uint32_t g_node_offset = 0, g_fwd_thread_offset = 0;

template <typename Value> Value read_at(const void *record_function, size_t offset) noexcept {
  Value value;
  std::memcpy(&value, static_cast<const unsigned char *>(record_function) + offset, sizeof(value));
  return value;
}

NodeOfOp node_of(const void *record_function) noexcept {
  if (g_node_offset == 0)
    return {};
  return {read_at<int64_t>(record_function, g_node_offset),
          read_at<uint64_t>(record_function, g_fwd_thread_offset)};
}

// One callback per kind, for a libtorch that keeps the kind elsewhere.
[[gnu::hot]] std::unique_ptr<ObserverContext> on_function(const void *record_function) noexcept {
  const TimedCall call(CallKind::kOperator);
  begin_op(record_function, OpKind::kOperator, g_name_of);
  return nullptr;
}

[[gnu::hot]] std::unique_ptr<ObserverContext> on_backward(const void *record_function) noexcept {
  const TimedCall call(CallKind::kNode);
  begin_op(record_function, OpKind::kBackward, g_name_of, node_of(record_function));
  return nullptr;
}

[[gnu::hot]] void on_end(const void *record_function, ObserverContext *) noexcept {
  const TimedCall call;
  end_op(record_function);
}

struct UserContext : ObserverContext {
  std::unique_ptr<UserRange> range;
};

std::unique_ptr<ObserverContext> on_user(const void *record_function) noexcept {
  const TimedCall call(CallKind::kOperator);
  std::unique_ptr<UserRange> range = begin_user_op(record_function, g_name_of);
  std::unique_ptr<UserContext> context(range ? new (std::nothrow) UserContext : nullptr);
  if (context)
    context->range = std::move(range);
  return context;
}

void on_user_end(const void *record_function, ObserverContext *context) noexcept {
  const TimedCall call;
  end_user_op(record_function,
              context ? static_cast<UserContext *>(context)->range.get() : nullptr);
}

struct CollectiveContext : ObserverContext {
  OpenCollective open;
};

std::unique_ptr<ObserverContext> on_collective(const void *record_function) noexcept {
  const TimedCall call;
  const char *name = g_name_of(record_function);
  std::optional<OpenCollective> open = begin_collective(name ? name : "", record_function);
  std::unique_ptr<CollectiveContext> context(open ? new (std::nothrow) CollectiveContext : nullptr);
  if (context)
    context->open = *open;
  return context;
}

void on_collective_end(const void *, ObserverContext *context) noexcept {
  const TimedCall call;
  if (context)
    end_collective(static_cast<CollectiveContext *>(context)->open);
}

// One callback for all kinds halves libtorch's cost: it lists its callbacks anew at every node of a
// backward pass.
[[gnu::hot]] std::unique_ptr<ObserverContext> on_any(const void *record_function) noexcept {
  size_t scope = scope_of(record_function);
  if (scope == kScopeUser) [[unlikely]]
    return on_user(record_function);
  if (scope == kScopeFunction) [[likely]]
    return on_function(record_function);
  return on_backward(record_function);
}

[[gnu::hot]] void on_any_end(const void *record_function, ObserverContext *context) noexcept {
  if (context) [[unlikely]]
    on_user_end(record_function, context);
  else
    on_end(record_function, context);
}

/// What a probe sees, and which callback began it.
struct Probe {
  std::mutex mutex;
  std::vector<TorchObserver::Seen> seen;
  std::vector<const void *> tokens;
  TorchObserver::Visit visit;
};
Probe &probe() {
  static Probe *all = new Probe; // outlives threads of libtorch
  return *all;
}

std::unique_ptr<ObserverContext> note_begin(const char *kind, size_t scope,
                                            const void *token) noexcept {
  try {
    const char *name = g_name_of(token);
    if (probe().visit && scope == kScopeFunction)
      probe().visit(name ? name : "", token);
    std::lock_guard lock(probe().mutex);
    TorchObserver::Seen &seen = probe().seen.emplace_back();
    seen.kind = kind;
    seen.name = name ? name : "";
    seen.tells_scope = scope_of(token) == scope;
    if (scope == kScopeBackwardFunction) {
      seen.words.resize(kProbedWords);
      std::memcpy(seen.words.data(), token, kProbedWords * sizeof(uint64_t));
      seen.thread = g_numbers.thread ? g_numbers.thread() : 0;
    }
    probe().tokens.push_back(token);
    return std::make_unique<UserContext>();
  } catch (...) { // no memory: the probe does not see it and fails
    return nullptr;
  }
}

std::unique_ptr<ObserverContext> note_function(const void *token) noexcept {
  return note_begin("operator", kScopeFunction, token);
}
std::unique_ptr<ObserverContext> note_backward(const void *token) noexcept {
  return note_begin("backward", kScopeBackwardFunction, token);
}
std::unique_ptr<ObserverContext> note_user(const void *token) noexcept {
  return note_begin("user", kScopeUser, token);
}

void note_end(const void *token, ObserverContext *context) noexcept {
  std::lock_guard lock(probe().mutex);
  for (size_t i = probe().tokens.size(); i-- > 0;) {
    if (probe().tokens[i] != token || !context)
      continue;
    probe().seen[i].has_ended = true;
    probe().tokens[i] = nullptr; // the next one may lie at the same place
    return;
  }
}

template <typename Function> bool resolve(void *library, const char *symbol, Function &function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

/// A search among the loaded libraries, and its result.
struct BuildIdSearch {
  std::string_view file_name;
  std::string_view build_id;
};

size_t aligned(size_t bytes) { return (bytes + 3) & ~size_t{3}; }

/// The build id's bytes; empty when the notes have none.
std::string_view build_id_in(const char *notes, size_t size) noexcept {
  for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= size;) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes + at, sizeof(note));
    size_t name = at + sizeof(note), text = name + aligned(note.n_namesz);
    at = text + aligned(note.n_descsz);
    if (note.n_type != NT_GNU_BUILD_ID || at > size || note.n_namesz != 4 ||
        std::memcmp(notes + name, "GNU", 4) != 0)
      continue;
    return {notes + text, note.n_descsz};
  }
  return {};
}

int visit_library(dl_phdr_info *library, size_t, void *argument) noexcept {
  auto &search = *static_cast<BuildIdSearch *>(argument);
  std::string_view path = library->dlpi_name ? library->dlpi_name : "";
  if (!path.substr(path.rfind('/') + 1).starts_with(search.file_name))
    return 0;
  for (ElfW(Half) i = 0; i < library->dlpi_phnum && search.build_id.empty(); ++i) {
    const ElfW(Phdr) &segment = library->dlpi_phdr[i];
    if (segment.p_type == PT_NOTE)
      search.build_id = build_id_in(
          reinterpret_cast<const char *>(library->dlpi_addr + segment.p_vaddr), segment.p_memsz);
  }
  return 1;
}

/// Has libtorch call back for operators of these scopes. [its number of the callback]
uint64_t added(std::initializer_list<size_t> scopes, StartCallback start, EndCallback end,
               bool needs_inputs) {
  RecordFunctionCallback callback;
  callback.start = start;
  callback.end = end;
  for (size_t scope : scopes)
    callback.scopes_and_needs[scope] = true;
  callback.scopes_and_needs[kNeedsInputs] = needs_inputs;
  return g_add(callback);
}

} // namespace

std::string loaded_build_id(const std::string &file_name) {
  constexpr char kDigits[] = "0123456789abcdef";
  BuildIdSearch search{file_name, {}};
  dl_iterate_phdr(visit_library, &search);
  std::string text;
  for (char each : search.build_id) {
    auto byte = static_cast<unsigned char>(each);
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

TorchObserver &TorchObserver::instance() {
  static TorchObserver *observer = new TorchObserver; // outlives threads of the target
  return *observer;
}

bool TorchObserver::find_symbols() {
  if (g_add && g_remove && g_name_of)
    return true;
  void *library = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
  if (!library)
    return false;
  if (!resolve(library, "_ZN2at15sequence_number4peekEv", g_numbers.next_node) ||
      !resolve(library, "_ZN2at14RecordFunction15currentThreadIdEv", g_numbers.thread))
    g_numbers = {};
  if (!resolve(library, "_ZN2at23isRecordFunctionEnabledEv", g_is_enabled) ||
      !resolve(library, "_ZN2at20enableRecordFunctionEb", g_enable))
    g_enable = nullptr;
  return resolve(library, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE", g_add) &&
         resolve(library, "_ZN2at14removeCallbackEm", g_remove) &&
         resolve(library, "_ZNK2at14RecordFunction4nameEv", g_name_of);
}

bool TorchObserver::attach(Client client, const Layout &layout) {
  if (!find_symbols())
    return false;
  stop();
  clients_ |= client;
  layout_ = layout;
  observe();
  return true;
}

void TorchObserver::detach(Client client) {
  stop();
  clients_ &= static_cast<uint8_t>(~client);
  observe();
}

std::optional<bool> TorchObserver::enable_records(bool enabled) {
  if (!find_symbols() || !g_enable)
    return std::nullopt;
  bool before = g_is_enabled();
  g_enable(enabled);
  return before;
}

void TorchObserver::observe() {
  bool links = (clients_ & kLayers) != 0 && layout_.node_offset != 0 && g_numbers.next_node;
  g_node_offset = links ? layout_.node_offset : 0;
  g_fwd_thread_offset = layout_.fwd_thread_offset;
  set_node_numbers(links ? g_numbers : NodeNumbers{});
  set_inputs_read(false);
  if (clients_ == 0)
    return;
  if (const uint8_t operators = clients_ & static_cast<uint8_t>(~kCollectives))
    observe_operators(operators);
  if ((clients_ & kCollectives) != 0) // after those: their frames are open then
    keep({added({kScopeUser}, on_collective, on_collective_end, knows_inputs())});
}

void TorchObserver::observe_operators(uint8_t clients) {
  // For layers alone operators of the forward pass cost nothing.
  bool all = clients != kLayers;
  bool inputs = (clients & kInputs) != 0 && knows_inputs();
  set_inputs_read(inputs);
  if (layout_.reads_scope && all)
    keep({added({kScopeFunction, kScopeBackwardFunction, kScopeUser}, on_any, on_any_end, inputs)});
  else if (layout_.reads_scope)
    keep({added({kScopeBackwardFunction, kScopeUser}, on_any, on_any_end, false)});
  else if (all)
    keep({added({kScopeFunction}, on_function, on_end, inputs),
          added({kScopeBackwardFunction}, on_backward, on_end, inputs),
          added({kScopeUser}, on_user, on_user_end, false)});
  else
    keep({added({kScopeBackwardFunction}, on_backward, on_end, false),
          added({kScopeUser}, on_user, on_user_end, false)});
}

void TorchObserver::keep(std::initializer_list<uint64_t> callbacks) {
  for (uint64_t each : callbacks)
    callbacks_[installed_++] = each;
}

void TorchObserver::stop() {
  while (installed_ != 0)
    g_remove(callbacks_[--installed_]);
}

void TorchObserver::begin_probe(Visit visit) {
  probe().visit = std::move(visit);
  keep({added({kScopeFunction}, note_function, note_end, static_cast<bool>(probe().visit)),
        added({kScopeBackwardFunction}, note_backward, note_end, false),
        added({kScopeUser}, note_user, note_end, false)});
}

std::vector<TorchObserver::Seen> TorchObserver::end_probe() {
  stop();
  std::lock_guard lock(probe().mutex);
  probe().tokens.clear();
  probe().visit = nullptr;
  return std::exchange(probe().seen, {});
}

} // namespace proton
