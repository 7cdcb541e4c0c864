#include "driver/shared_library.h"

#include <dlfcn.h>
#include <link.h>

#include "support/error.h"

namespace proton {
namespace {

std::string reason_of_failure() {
  const char *text = dlerror();
  return text ? text : "it does not load";
}

std::string file_of(void *handle, const std::string &asked) {
  link_map *map = nullptr;
  bool is_known = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name;
  return is_known && *map->l_name != '\0' ? map->l_name : asked;
}

} // namespace

SharedLibrary SharedLibrary::open(const std::string &what,
                                  const std::vector<LibraryCandidate> &candidates,
                                  const std::string &advice) {
  std::string tried;
  for (const LibraryCandidate &candidate : candidates) {
    int flags = RTLD_NOW | (candidate.is_global ? RTLD_GLOBAL : RTLD_LOCAL) |
                (candidate.only_if_loaded ? RTLD_NOLOAD : 0);
    dlerror(); // forgets an older failure
    void *handle = dlopen(candidate.path.c_str(), flags);
    if (handle) {
      SharedLibrary library;
      library.handle_ = handle;
      library.path_ = file_of(handle, candidate.path);
      library.origin_ = candidate.origin;
      return library;
    }
    if (candidate.only_if_loaded)
      continue; // not being loaded yet is not a failure
    tried += (tried.empty() ? "" : "; ") + candidate.path + " (" + candidate.origin +
             "): " + reason_of_failure();
  }
  throw Error(ErrorCode::kUnavailable, "cannot load " + what + "; tried " +
                                           (tried.empty() ? "no file" : tried) + "; " + advice);
}

void *SharedLibrary::symbol(const char *name) const {
  return handle_ ? dlsym(handle_, name) : nullptr;
}

SymbolTable::Symbol SymbolTable::need(const char *name) {
  Symbol symbol = find(name);
  if (library_ && !symbol.address)
    missing_ += (missing_.empty() ? "" : ", ") + std::string(name);
  return symbol;
}

void SymbolTable::check(const SharedLibrary &library, const std::string &advice) const {
  if (!missing_.empty())
    throw Error(ErrorCode::kUnavailable, library.path() + " lacks " + missing_ + "; " + advice);
}

} // namespace proton
