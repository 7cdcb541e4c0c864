#include "correlation/capture_store.h"

#include <algorithm>
#include <utility>

namespace proton {

bool CapturedAt::is_seen_by(uint32_t session) const {
  return std::find(sessions.begin(), sessions.end(), session) != sessions.end();
}

size_t CaptureStore::Hash::operator()(const Capture &at) const noexcept {
  uint64_t hash = (uint64_t{at.shadow} << 32 | at.python) * 0x9E3779B97F4A7C15ull;
  return (hash ^ at.epoch) * 0xC2B2AE3D27D4EB4Full;
}

bool CaptureStore::Same::operator()(const Capture &left, const Capture &right) const noexcept {
  return left.shadow == right.shadow && left.python == right.python && left.epoch == right.epoch;
}

CaptureId CaptureStore::keep(const Capture &at, const std::vector<uint32_t> &sessions) {
  auto [found, is_new] = known_.try_emplace(at, next_);
  if (!is_new) {
    ++places_.at(found->second).references;
    return found->second;
  }
  try {
    places_.try_emplace(next_, CapturedAt{at, sessions, {}, 1});
  } catch (...) {
    known_.erase(found);
    throw;
  }
  return next_++;
}

CaptureId CaptureStore::keep(const Capture &at, const std::vector<uint32_t> &sessions,
                             std::vector<UserMetric> metrics) {
  places_.try_emplace(next_, CapturedAt{at, sessions, std::move(metrics), 1});
  return next_++;
}

void CaptureStore::keep(CaptureId id) {
  auto found = places_.find(id);
  if (found != places_.end())
    ++found->second.references;
}

void CaptureStore::give_back(CaptureId id) {
  auto found = places_.find(id);
  if (found == places_.end() || --found->second.references != 0)
    return;
  if (found->second.metrics.empty())
    known_.erase(found->second.at);
  places_.erase(found);
}

const CapturedAt *CaptureStore::find(CaptureId id) const {
  auto found = places_.find(id);
  return found == places_.end() ? nullptr : &found->second;
}

void CaptureStore::append_ids(std::vector<ContextId> &ids) const {
  for (const auto &[id, place] : places_) {
    ids.push_back(place.at.shadow);
    ids.push_back(place.at.python);
  }
}

} // namespace proton
