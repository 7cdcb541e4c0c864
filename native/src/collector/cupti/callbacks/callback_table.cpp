#include "collector/cupti/callbacks/callback_table.h"

namespace proton {

void CallbackTable::add(CallbackSource &source) {
  Row &row = rows_.at(static_cast<size_t>(source.domain()));
  for (uint32_t cbid : source.callbacks())
    row.at(cbid).store(&source, std::memory_order_release);
}

} // namespace proton
