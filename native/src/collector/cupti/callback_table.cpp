#include "collector/cupti/callback_table.h"

namespace proton {

void CallbackTable::add(CallbackSource &source) {
  std::unique_ptr<Row> &row = rows_.at(static_cast<size_t>(source.domain()));
  if (!row)
    row = std::make_unique<Row>(Row{});
  for (uint32_t cbid : source.callbacks())
    row->at(cbid) = &source;
}

void CallbackTable::clear() {
  for (std::unique_ptr<Row> &row : rows_)
    if (row)
      row->fill(nullptr); // not freed: a callback may be under way
}

} // namespace proton
