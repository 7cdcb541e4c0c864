// A tool that receives NVTX calls: writes "push NAME" and "pop" to the file in FAKE_NVTX_LOG.
// With FAKE_NVTX_REFUSES=1 it wants nothing.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using Function = void (*)();
struct Callbacks {
  size_t struct_bytes;
  int (*module_functions)(int module, Function ***functions, unsigned *count);
};

std::FILE *log_file() {
  static std::FILE *file = std::fopen(std::getenv("FAKE_NVTX_LOG"), "a");
  return file;
}

int push(const char *name) {
  std::fprintf(log_file(), "push %s\n", name);
  std::fflush(log_file());
  return 0;
}

int pop() {
  std::fprintf(log_file(), "pop\n");
  std::fflush(log_file());
  return 0;
}

} // namespace

extern "C" __attribute__((visibility("default"))) int
InitializeInjectionNvtx2(const void *(*get_table)(uint32_t)) {
  if (std::getenv("FAKE_NVTX_REFUSES"))
    return 0;
  const auto *callbacks = static_cast<const Callbacks *>(get_table(1));
  Function **functions = nullptr;
  unsigned count = 0;
  if (!callbacks || callbacks->struct_bytes < sizeof(Callbacks) ||
      !callbacks->module_functions(1, &functions, &count) || count < 12)
    return 0;
  *functions[9] = reinterpret_cast<Function>(push);
  *functions[11] = reinterpret_cast<Function>(pop);
  return 1;
}
