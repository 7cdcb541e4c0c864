#include "collector/cupti/pc_sampling/cubin_store.h"

namespace proton {

void CubinStore::load(const void *context, uint32_t module, uint64_t crc, const char *image,
                      size_t bytes) {
  unload(context, module); // its end was not seen
  Entry &entry = cubins_[crc];
  if (!entry.image && bytes_ + bytes <= kMostBytes) {
    entry.image = std::make_shared<const std::vector<char>>(image, image + bytes);
    bytes_ += bytes;
  }
  ++entry.modules;
  modules_[{context, module}] = crc;
}

void CubinStore::release(uint64_t crc) {
  auto entry = cubins_.find(crc);
  if (entry != cubins_.end() && entry->second.modules != 0)
    --entry->second.modules;
}

void CubinStore::unload(const void *context, uint32_t module) {
  auto known = modules_.find({context, module});
  if (known == modules_.end())
    return;
  release(known->second);
  modules_.erase(known);
}

void CubinStore::unload_all(const void *context) {
  auto known = modules_.lower_bound({context, 0});
  while (known != modules_.end() && known->first.first == context) {
    release(known->second);
    known = modules_.erase(known);
  }
}

CubinStore::Cubin CubinStore::find(uint64_t crc) const {
  auto entry = cubins_.find(crc);
  return entry == cubins_.end() ? nullptr : entry->second.image;
}

void CubinStore::forget_unloaded() {
  std::erase_if(cubins_, [&](const auto &item) {
    if (item.second.modules != 0)
      return false;
    bytes_ -= item.second.image ? item.second.image->size() : 0;
    return true;
  });
}

} // namespace proton
