#include "collector/cpu/op_inputs.h"

#include <array>
#include <atomic>
#include <charconv>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "record/device.h"
#include "support/fork_locks.h"

namespace proton {
namespace {

constexpr uint64_t kInlineSizes = 5; // of a tensor; more lie elsewhere
constexpr uint64_t kMostSizes = 64;  // a tensor with more is not one
constexpr uint64_t kMostArguments = 256;
constexpr size_t kShownElements = 8; // of a list, in a text
constexpr size_t kMostWorks = 65536;
constexpr uint64_t kMixer = 0x9E3779B97F4A7C15ull;

struct Argument {
  uint64_t payload;
  uint32_t tag;
  uint32_t padding;
};
static_assert(sizeof(Argument) == 16);

/// Everything that is set together; never freed, because threads of the target may read it.
struct Setting {
  InputLayout layout;
  std::vector<WorkOperator> operators;
  std::vector<uint64_t> hashes; ///< of their names
};
std::atomic<const Setting *> g_setting{nullptr};

template <typename Value> Value read(const void *object, size_t offset) noexcept {
  Value value;
  std::memcpy(&value, static_cast<const unsigned char *>(object) + offset, sizeof(value));
  return value;
}

uint64_t mix(uint64_t hash, uint64_t value) noexcept {
  hash = (hash ^ value) * kMixer;
  return hash ^ (hash >> 29);
}

uint64_t hash_of(std::string_view name) noexcept {
  uint64_t hash = name.size();
  size_t at = 0;
  for (; at + sizeof(uint64_t) <= name.size(); at += sizeof(uint64_t))
    hash = mix(hash, read<uint64_t>(name.data(), at));
  for (; at < name.size(); ++at)
    hash = mix(hash, static_cast<unsigned char>(name[at]));
  return hash;
}

std::span<const Argument> arguments_of(const InputLayout &layout, const void *function) noexcept {
  const auto *first = read<const Argument *>(function, layout.arguments);
  auto count = read<uint64_t>(function, layout.arguments + sizeof(void *));
  if (!first || count > kMostArguments)
    return {};
  return {first, count};
}

std::span<const Argument> elements_of(const InputLayout &layout, const Argument &list) noexcept {
  const auto *object = reinterpret_cast<const void *>(list.payload);
  if (!object)
    return {};
  const auto *first = read<const Argument *>(object, layout.elements);
  const auto *end = read<const Argument *>(object, layout.elements + sizeof(void *));
  return first && end > first ? std::span(first, end) : std::span<const Argument>();
}

struct Tensor {
  uint16_t dtype = 0;
  bool is_meta = false;
  std::span<const int64_t> sizes;
};
Tensor tensor_of(const InputLayout &layout, const Argument &argument) noexcept {
  Tensor tensor;
  const auto *object = reinterpret_cast<const unsigned char *>(argument.payload);
  if (!object)
    return tensor;
  tensor.dtype = read<uint16_t>(object, layout.dtype);
  tensor.is_meta = layout.device != 0 && read<uint8_t>(object, layout.device) == layout.meta;
  auto count = read<uint64_t>(object, layout.sizes);
  const unsigned char *at = object + layout.sizes + sizeof(count);
  if (count <= kMostSizes)
    tensor.sizes = {count > kInlineSizes ? read<const int64_t *>(at, 0)
                                         : reinterpret_cast<const int64_t *>(at),
                    count};
  return tensor;
}

bool is_number(const InputLayout &layout, uint32_t tag) noexcept {
  return tag == layout.int_tag || tag == layout.bool_tag || tag == layout.double_tag;
}

[[gnu::hot]] uint64_t hash_of(const InputLayout &layout, std::span<const Argument> arguments,
                              bool with_numbers, uint64_t hash) noexcept {
  for (const Argument &each : arguments) {
    if (each.tag == layout.tensor_tag) {
      Tensor tensor = tensor_of(layout, each);
      hash = mix(hash, uint64_t{tensor.is_meta} << 32 | uint64_t{tensor.dtype} << 8 |
                           tensor.sizes.size());
      for (int64_t size : tensor.sizes)
        hash = mix(hash, static_cast<uint64_t>(size));
    } else if (each.tag == layout.list_tag) {
      hash = mix(hash_of(layout, elements_of(layout, each), with_numbers, hash), each.tag);
    } else if (with_numbers) {
      uint64_t value = each.tag == layout.bool_tag ? each.payload & 0xff : each.payload;
      hash = mix(mix(hash, each.tag), is_number(layout, each.tag) ? value : 0);
    }
  }
  return hash;
}

template <typename Number> void append_number(std::string &text, Number number) {
  std::array<char, 32> digits;
  auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  text.append(digits.data(), end.ptr);
}

/// Appends the texts of arguments, and commas between them. Returns whether there are any.
bool append_text(std::string &text, const InputLayout &layout, std::span<const Argument> arguments,
                 bool with_numbers);

bool append_one(std::string &text, const InputLayout &layout, const Argument &argument,
                bool with_numbers) {
  if (argument.tag == layout.tensor_tag) {
    Tensor tensor = tensor_of(layout, argument);
    auto name = layout.dtypes.find(tensor.dtype);
    if (name == layout.dtypes.end()) { // an undefined tensor
      text += with_numbers ? "None" : "";
      return with_numbers;
    }
    text += name->second + '[';
    for (size_t i = 0; i < tensor.sizes.size(); ++i) {
      text += i == 0 ? "" : ",";
      append_number(text, tensor.sizes[i]);
    }
    text += ']';
    return true;
  }
  if (argument.tag == layout.list_tag) {
    std::span<const Argument> elements = elements_of(layout, argument);
    size_t before = text.size();
    text += '[';
    bool has_any = append_text(
        text, layout, elements.first(std::min(elements.size(), kShownElements)), with_numbers);
    if (!has_any && !with_numbers) {
      text.resize(before);
      return false;
    }
    if (elements.size() > kShownElements) {
      text += ", and ";
      append_number(text, elements.size() - kShownElements);
      text += " more";
    }
    text += ']';
    return true;
  }
  if (!with_numbers)
    return false;
  if (argument.tag == layout.bool_tag)
    text += (argument.payload & 0xff) != 0 ? "True" : "False";
  else if (argument.tag == layout.int_tag)
    append_number(text, static_cast<int64_t>(argument.payload));
  else if (argument.tag == layout.double_tag)
    append_number(text, read<double>(&argument.payload, 0));
  else // also for texts, devices and other arguments without a number
    text += "None";
  return true;
}

bool append_text(std::string &text, const InputLayout &layout, std::span<const Argument> arguments,
                 bool with_numbers) {
  bool has_any = false;
  for (const Argument &each : arguments) {
    size_t before = text.size();
    text += has_any ? ", " : "";
    if (append_one(text, layout, each, with_numbers))
      has_any = true;
    else
      text.resize(before);
  }
  return has_any;
}

void visit_tensors(const InputLayout &layout, std::span<const Argument> arguments,
                   const VisitTensor &visit) {
  for (const Argument &each : arguments) {
    if (each.tag == layout.list_tag) {
      visit_tensors(layout, elements_of(layout, each), visit);
    } else if (each.tag == layout.tensor_tag) {
      Tensor tensor = tensor_of(layout, each);
      auto name = layout.dtypes.find(tensor.dtype);
      if (name != layout.dtypes.end())
        visit(name->second, tensor.sizes);
    }
  }
}

/// Whether any tensor has no memory, as while a compiler traces a program.
bool has_meta(const InputLayout &layout, std::span<const Argument> arguments) noexcept {
  for (const Argument &each : arguments)
    if ((each.tag == layout.tensor_tag && tensor_of(layout, each).is_meta) ||
        (each.tag == layout.list_tag && has_meta(layout, elements_of(layout, each))))
      return true;
  return false;
}

struct WorkTable {
  WorkTable() { guard_across_fork(mutex, LockRank::kWorks); }
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, int32_t, std::less<>> positions;
  std::vector<Work> works;
};
WorkTable &work_table() {
  static WorkTable *table = new WorkTable; // outlives threads of the target
  return *table;
}

int32_t intern_work(const std::string &name, const std::string &signature) {
  WorkTable &table = work_table();
  std::lock_guard lock(table.mutex);
  auto [found, is_new] =
      table.positions.try_emplace({name, signature}, static_cast<int32_t>(table.works.size()));
  if (is_new && table.works.size() == kMostWorks) {
    table.positions.erase(found);
    return kLostWork;
  }
  if (is_new)
    table.works.push_back({name, signature});
  return found->second;
}

/// What equal arguments made of an operator before, by the hash of both.
struct KnownInputs {
  static constexpr size_t kEntries = 1024; // a training step has hundreds
  struct Entry {
    uint64_t hash = 0;
    const Setting *setting = nullptr;
    OpInputs inputs;
  };
  std::array<Entry, kEntries> entries;
};
// Initial-exec: one instruction instead of a call per access.
[[gnu::tls_model("initial-exec")]] thread_local KnownInputs *t_known = nullptr;
[[gnu::tls_model("initial-exec")]] thread_local bool t_known_ends = false;

struct KnownOwner {
  ~KnownOwner() {
    t_known = nullptr;
    t_known_ends = true;
  }
  std::unique_ptr<KnownInputs> known;
};
thread_local KnownOwner t_known_owner;

/// Null while the thread ends.
KnownInputs *known_inputs() {
  if (!t_known && !t_known_ends) {
    t_known_owner.known = std::make_unique<KnownInputs>();
    t_known = t_known_owner.known.get();
  }
  return t_known;
}

/// Position of the operator with work; -1 for others.
int32_t operator_called(const Setting &setting, std::string_view name, uint64_t hash) noexcept {
  for (size_t i = 0; i < setting.hashes.size(); ++i)
    if (setting.hashes[i] == hash && setting.operators[i].name == name)
      return static_cast<int32_t>(i);
  return -1;
}

OpInputs interned(const Setting &setting, const void *function, int32_t of_operator) {
  OpInputs inputs;
  bool with_numbers =
      of_operator >= 0 && setting.operators[static_cast<size_t>(of_operator)].needs_numbers;
  std::string text = inputs_text(function, with_numbers);
  if (text.empty())
    return inputs;
  VariantRecord variant;
  variant.signature = text.c_str();
  inputs.variant = intern_variant(variant);
  if (of_operator < 0)
    return inputs;
  if (has_meta(setting.layout, arguments_of(setting.layout, function))) {
    inputs.work = kFakeWork;
    return inputs;
  }
  inputs.of_operator = of_operator;
  inputs.work = intern_work(setting.operators[static_cast<size_t>(of_operator)].name, text);
  return inputs;
}

} // namespace

void set_input_layout(const InputLayout &layout, std::vector<WorkOperator> operators) {
  auto setting = std::make_unique<Setting>();
  setting->layout = layout;
  setting->operators = std::move(operators);
  for (const WorkOperator &each : setting->operators)
    setting->hashes.push_back(hash_of(each.name));
  static auto *kept = new std::vector<std::unique_ptr<const Setting>>;
  kept->push_back(std::move(setting));
  g_setting.store(kept->back().get(), std::memory_order_release);
}

bool knows_inputs() noexcept { return g_setting.load(std::memory_order_acquire) != nullptr; }

void for_each_tensor(const void *function, const VisitTensor &visit) {
  if (const Setting *setting = g_setting.load(std::memory_order_acquire))
    visit_tensors(setting->layout, arguments_of(setting->layout, function), visit);
}

std::string inputs_text(const void *function, bool with_numbers) {
  std::string text;
  if (const Setting *setting = g_setting.load(std::memory_order_acquire))
    append_text(text, setting->layout, arguments_of(setting->layout, function), with_numbers);
  return text;
}

[[gnu::hot]] OpInputs read_inputs(const void *function, std::string_view name) noexcept {
  const Setting *setting = g_setting.load(std::memory_order_acquire);
  if (!setting)
    return {};
  try {
    uint64_t name_hash = hash_of(name);
    int32_t of_operator = operator_called(*setting, name, name_hash);
    bool with_numbers =
        of_operator >= 0 && setting->operators[static_cast<size_t>(of_operator)].needs_numbers;
    uint64_t hash =
        hash_of(setting->layout, arguments_of(setting->layout, function), with_numbers, name_hash);
    KnownInputs *known = known_inputs();
    if (!known)
      return {};
    KnownInputs::Entry &entry = known->entries[(hash >> 20) % KnownInputs::kEntries];
    if (entry.setting != setting || entry.hash != hash)
      entry = {hash, setting, interned(*setting, function, of_operator)};
    return entry.inputs;
  } catch (...) { // no memory: the operator stands there without its arguments
    return {};
  }
}

int32_t tensors_variant(std::span<const void *const> tensors, uint64_t of,
                        const std::function<std::string()> &more) noexcept {
  const Setting *setting = g_setting.load(std::memory_order_acquire);
  if (!setting || tensors.empty())
    return -1;
  try {
    std::vector<Argument> arguments;
    arguments.reserve(tensors.size());
    for (const void *tensor : tensors)
      arguments.push_back({reinterpret_cast<uint64_t>(tensor), setting->layout.tensor_tag, 0});
    uint64_t hash = hash_of(setting->layout, arguments, false, mix(of, kMixer));
    KnownInputs *known = known_inputs();
    if (!known)
      return -1;
    KnownInputs::Entry &entry = known->entries[(hash >> 20) % KnownInputs::kEntries];
    if (entry.setting != setting || entry.hash != hash) {
      std::string text;
      append_text(text, setting->layout, arguments, false);
      if (std::string rest = more ? more() : ""; !rest.empty())
        text += (text.empty() ? "" : ", ") + rest;
      VariantRecord variant;
      variant.signature = text.c_str();
      OpInputs inputs;
      inputs.variant = intern_variant(variant);
      // `more` may have called anything, which may have taken the place meanwhile.
      known->entries[(hash >> 20) % KnownInputs::kEntries] = {hash, setting, inputs};
    }
    return entry.inputs.variant;
  } catch (...) { // no memory
    return -1;
  }
}

std::vector<Work> works(size_t first) {
  WorkTable &table = work_table();
  std::lock_guard lock(table.mutex);
  if (first >= table.works.size())
    return {};
  return {table.works.begin() + static_cast<std::ptrdiff_t>(first), table.works.end()};
}

} // namespace proton
