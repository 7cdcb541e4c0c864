#include "collector/cpu/comm_group.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace proton {
namespace {

// The constructor of torch::ParamCommsDebugInfo; in older versions without the flag at the end,
// which is then ignored. The names have the types of all parameters.
constexpr const char *kConstructors[] = {
    "_ZN5torch19ParamCommsDebugInfoC1ESt5tupleIJNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE"
    "ES7_EEiOS7_llN3c1010ScalarTypeESt6vectorIlSaIlEESE_iiib",
    "_ZN5torch19ParamCommsDebugInfoC1ESt5tupleIJNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE"
    "ES7_EEiOS7_llN3c1010ScalarTypeESt6vectorIlSaIlEESE_iii"};
constexpr const char *kGet = "_ZN3c1020ThreadLocalDebugInfo3getENS_13DebugInfoKindE";
constexpr const char *kKind = "_ZN3c1013DebugInfoKind16PARAM_COMMS_INFOE";
constexpr const char *kTable = "_ZTVN5torch19ParamCommsDebugInfoE";
constexpr uintptr_t kOldKind = 4; ///< where kinds are numbers
constexpr size_t kMostBytes = 1024;

using Names = std::tuple<std::string, std::string>;
using Construct = void (*)(void *, Names, int, std::string &&, int64_t, int64_t, int8_t,
                           std::vector<int64_t>, std::vector<int64_t>, int, int, int, bool);
using Get = const unsigned char *(*)(uintptr_t kind);

struct Reader {
  Get get = nullptr;
  uintptr_t kind = 0;
  const void *table = nullptr; ///< that objects of the right type begin with
  size_t name = 0, ranks = 0;  ///< offsets in bytes
};
std::atomic<const Reader *> g_reader{nullptr}; ///< never freed: threads of the target read it

template <typename Value> Value read(const unsigned char *object, size_t offset) noexcept {
  Value value;
  std::memcpy(&value, object + offset, sizeof(value));
  return value;
}

/// The text of a std::string there.
std::string_view text_at(const unsigned char *object, size_t offset) noexcept {
  return {read<const char *>(object, offset), read<size_t>(object, offset + sizeof(void *))};
}

/// Sets the offsets by an object with known values, which is not destroyed. False: not found.
bool find_offsets(Construct construct, Reader &reader) {
  alignas(16) static std::array<unsigned char, kMostBytes> object{};
  constexpr int kRanks = 0x5a3c71;
  const std::string name = "name of a group that proton_bench made to see where it is";
  construct(object.data(), Names(name, "description"), 1, std::string("all_reduce"), 2, 3, 6, {},
            {}, 4, 5, kRanks, true);
  if (read<const void *>(object.data(), 0) != reader.table)
    return false;
  size_t found = 0;
  for (size_t at = sizeof(void *); at + sizeof(std::string) <= object.size(); at += 4) {
    if (read<int>(object.data(), at) == kRanks) {
      reader.ranks = at;
      ++found;
    }
    if (at % sizeof(void *) != 0)
      continue;
    std::string_view text = text_at(object.data(), at);
    // Not the number before the capacity, which reads as a pointer too.
    if (text.size() == name.size() && reinterpret_cast<uintptr_t>(text.data()) > name.size() &&
        text == name) {
      reader.name = at;
      ++found;
    }
  }
  return found == 2 && reader.name != 0 && reader.ranks != 0;
}

} // namespace

bool find_comm_groups() noexcept {
  if (g_reader.load(std::memory_order_acquire))
    return true;
  try {
    void *library = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
    if (!library)
      return false;
    Reader reader;
    Construct construct = nullptr;
    for (const char *symbol : kConstructors)
      if (!construct)
        construct = reinterpret_cast<Construct>(dlsym(library, symbol));
    reader.get = reinterpret_cast<Get>(dlsym(library, kGet));
    auto *table = static_cast<const unsigned char *>(dlsym(library, kTable));
    if (!construct || !reader.get || !table)
      return false;
    reader.table = table + 2 * sizeof(void *);
    auto *kind = static_cast<const uintptr_t *>(dlsym(library, kKind));
    reader.kind = kind ? *kind : kOldKind;
    if (!find_offsets(construct, reader))
      return false;
    g_reader.store(new Reader(reader), std::memory_order_release);
    return true;
  } catch (const std::exception &) { // no memory
    return false;
  }
}

CommGroup current_comm_group() noexcept {
  const Reader *reader = g_reader.load(std::memory_order_acquire);
  const unsigned char *object = reader ? reader->get(reader->kind) : nullptr;
  if (!object || read<const void *>(object, 0) != reader->table)
    return {};
  int ranks = read<int>(object, reader->ranks);
  return {text_at(object, reader->name), ranks > 0 ? static_cast<uint32_t>(ranks) : 0};
}

} // namespace proton
