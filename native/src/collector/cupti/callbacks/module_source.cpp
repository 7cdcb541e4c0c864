#include "collector/cupti/callbacks/module_source.h"

#include "driver/cuda/cubin.h"

namespace proton {

void ModuleSource::handle(uint32_t, const void *data) noexcept {
  const auto &resource = *static_cast<const cupti::ResourceData *>(data);
  const auto *module = static_cast<const cupti::ModuleResourceData *>(resource.descriptor);
  if (!module || !module->cubin ||
      !library_.load(std::memory_order_acquire)->functions().get_cubin_crc)
    return;
  try {
    cupti::CubinCrcParameters parameters;
    parameters.cubin_size = module->cubin_size;
    parameters.cubin = module->cubin;
    if (library_.load(std::memory_order_acquire)->functions().get_cubin_crc(&parameters) !=
        cupti::kSuccess)
      return; // its kernels stay without a hash
    for (std::string_view kernel : kernels_of_cubin(module->cubin, module->cubin_size))
      codes_.set_name(kernel, parameters.crc);
  } catch (...) { // no memory: the rest of its kernels stays without a hash
  }
}

} // namespace proton
