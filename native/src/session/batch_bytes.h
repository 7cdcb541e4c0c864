// How much memory a batch of events holds.
#pragma once

#include <cstddef>

#include "record/timeline_event.h"

namespace proton {

size_t batch_bytes(const EventBatch &batch) noexcept;

} // namespace proton
