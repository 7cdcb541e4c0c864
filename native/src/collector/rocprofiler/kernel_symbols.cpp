#include "collector/rocprofiler/kernel_symbols.h"

#include "collector/hip/kernel_key.h"

namespace proton {
void KernelSymbols::add(const rocprofiler::KernelSymbolData &symbol) {
  auto added = std::make_unique<KernelSymbol>();
  if (symbol.name)
    added->name.assign(symbol.name, plain_length(symbol.name));
  added->registers = symbol.vector_registers;
  std::lock_guard lock(mutex_);
  symbols_.try_emplace(symbol.kernel, std::move(added));
}

const KernelSymbol *KernelSymbols::find(uint64_t kernel) const {
  std::lock_guard lock(mutex_);
  auto found = symbols_.find(kernel);
  return found == symbols_.end() ? nullptr : found->second.get();
}

} // namespace proton
