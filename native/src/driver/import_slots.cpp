#include "driver/import_slots.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace proton {
namespace {

/// What a library's dynamic section says.
struct DynamicTables {
  const ElfW(Sym) *symbols = nullptr;
  const char *names = nullptr;
  const ElfW(Rela) *calls = nullptr; ///< slots of calls
  size_t call_count = 0;
  const ElfW(Rela) *others = nullptr;
  size_t other_count = 0;
};

struct LibrarySearch {
  std::string_view file_name;
  std::string_view path;
  uintptr_t base = 0;
  DynamicTables tables;
  uintptr_t read_only_from = 0;
  uintptr_t read_only_to = 0;
  bool is_found = false;
};

/// Some loaders leave addresses there as they are in the file.
template <typename Entry> const Entry *entry_at(uintptr_t base, ElfW(Addr) address) {
  return reinterpret_cast<const Entry *>(address < base ? base + address : address);
}

DynamicTables tables_of(uintptr_t base, const ElfW(Dyn) * section) {
  DynamicTables tables;
  size_t call_bytes = 0, other_bytes = 0;
  bool has_addends = true;
  for (; section->d_tag != DT_NULL; ++section) {
    const ElfW(Addr) address = section->d_un.d_ptr;
    switch (section->d_tag) {
    case DT_SYMTAB:
      tables.symbols = entry_at<ElfW(Sym)>(base, address);
      break;
    case DT_STRTAB:
      tables.names = entry_at<char>(base, address);
      break;
    case DT_JMPREL:
      tables.calls = entry_at<ElfW(Rela)>(base, address);
      break;
    case DT_PLTRELSZ:
      call_bytes = section->d_un.d_val;
      break;
    case DT_PLTREL:
      has_addends = section->d_un.d_val == DT_RELA;
      break;
    case DT_RELA:
      tables.others = entry_at<ElfW(Rela)>(base, address);
      break;
    case DT_RELASZ:
      other_bytes = section->d_un.d_val;
      break;
    default:
      break;
    }
  }
  tables.call_count = tables.calls && has_addends ? call_bytes / sizeof(ElfW(Rela)) : 0;
  tables.other_count = tables.others ? other_bytes / sizeof(ElfW(Rela)) : 0;
  return tables;
}

int visit_tables(dl_phdr_info *library, size_t, void *argument) noexcept {
  auto &search = *static_cast<LibrarySearch *>(argument);
  const std::string_view path = library->dlpi_name ? library->dlpi_name : "";
  if (!path.substr(path.rfind('/') + 1).starts_with(search.file_name))
    return 0;
  search.path = path;
  search.base = library->dlpi_addr;
  for (ElfW(Half) i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = library->dlpi_phdr[i];
    const uintptr_t start = search.base + segment.p_vaddr;
    if (segment.p_type == PT_DYNAMIC) {
      search.tables = tables_of(search.base, reinterpret_cast<const ElfW(Dyn) *>(start));
      search.is_found = true;
    } else if (segment.p_type == PT_GNU_RELRO) {
      search.read_only_from = start;
      search.read_only_to = start + segment.p_memsz;
    }
  }
  return 1;
}

/// Whether the loader fills the place with the plain address of the symbol.
bool is_slot(const ElfW(Rela) & entry) {
#if defined(__x86_64__)
  const auto type = ELF64_R_TYPE(entry.r_info);
  return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
  const auto type = ELF64_R_TYPE(entry.r_info);
  return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
#else
  static_cast<void>(entry);
  return false;
#endif
}

void *load(void **place) noexcept {
  return std::atomic_ref<void *>(*place).load(std::memory_order_acquire);
}

} // namespace

ImportSlots ImportSlots::find(const std::string &file_name, const char *symbol) {
  ImportSlots found;
  LibrarySearch search;
  search.file_name = file_name;
  dl_iterate_phdr(visit_tables, &search);
  const DynamicTables &tables = search.tables;
  if (!search.is_found || !tables.symbols || !tables.names)
    return found;
  found.base_ = reinterpret_cast<const void *>(search.base);
  found.path_ = search.path;
  found.symbol_ = symbol;
  auto collect = [&](const ElfW(Rela) *entries, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const ElfW(Sym) &imported = tables.symbols[ELF64_R_SYM(entries[i].r_info)];
      if (!is_slot(entries[i]) || std::strcmp(tables.names + imported.st_name, symbol) != 0)
        continue;
      const uintptr_t at = search.base + entries[i].r_offset;
      const bool is_read_only = at >= search.read_only_from && at < search.read_only_to;
      found.slots_.push_back({reinterpret_cast<void **>(at), is_read_only});
    }
  };
  collect(tables.calls, tables.call_count);
  collect(tables.others, tables.other_count);
  return found;
}

ImportSlots::Function ImportSlots::target() const {
  if (slots_.empty())
    return nullptr;
  void *now = load(slots_.front().place);
  // Until the first call a slot may lead to the loader, by way of the calling library itself.
  Dl_info place;
  const bool is_filled = now && dladdr(now, &place) != 0 && place.dli_fbase != base_;
  if (is_filled)
    return reinterpret_cast<Function>(now);
  void *library = dlopen(path_.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  void *found = library ? dlsym(library, symbol_.c_str()) : nullptr; // there, or in what it needs
  if (library)
    dlclose(library); // those that loaded it keep it
  return reinterpret_cast<Function>(found);
}

bool ImportSlots::write(const Slot &slot, void *value) {
  const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t at = reinterpret_cast<uintptr_t>(slot.place);
  auto *page = reinterpret_cast<void *>(at & ~(page_bytes - 1));
  if (slot.is_read_only && mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0)
    return false;
  std::atomic_ref<void *>(*slot.place).store(value, std::memory_order_release);
  if (slot.is_read_only)
    mprotect(page, page_bytes, PROT_READ);
  return true;
}

bool ImportSlots::replace(Function replacement) {
  bool is_whole = !slots_.empty();
  for (const Slot &slot : slots_)
    is_whole &= write(slot, reinterpret_cast<void *>(replacement));
  return is_whole;
}

} // namespace proton
