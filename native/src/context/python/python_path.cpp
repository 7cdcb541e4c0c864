#include "context/python/python_path.h"

#include <algorithm>

#include "calltree/context_tree.h"

namespace proton {
namespace {

size_t hash_of(const Site &site, ContextId parent) noexcept {
  uint64_t hash = reinterpret_cast<uintptr_t>(site.code) ^ (uint64_t{parent} << 32);
  hash = (hash ^ static_cast<uint64_t>(site.offset)) * 0x9E3779B97F4A7C15ull;
  return static_cast<size_t>(hash >> 40);
}

} // namespace

void PythonPath::forget(uint32_t collection) noexcept {
  frames_.clear();
  collection_ = collection;
}

void PythonPath::renew(uint32_t generation) noexcept {
  if (generation_ == generation)
    return;
  generation_ = generation;
  frames_.clear();
  steps_.fill({});
}

std::optional<ContextId> PythonPath::last(EpochId epoch) {
  ContextTree &tree = ContextTree::instance();
  if (frames_.empty())
    return 0;
  // Ids of before a collection may stand for other paths by now. A collection that begins after
  // this line frees only what no live epoch used, and `touch_since` notices it.
  if (tree.collections() != collection_)
    return std::nullopt;
  if (!tree.touch_since(collection_, leaf(), epoch))
    return std::nullopt;
  return leaf();
}

std::optional<ContextId> PythonPath::follow(std::span<const Site> walked, EpochId epoch,
                                            FindSiteName find) {
  ContextTree &tree = ContextTree::instance();
  for (;;) {
    uint32_t collection = tree.settled_collections();
    if (collection != collection_)
      forget(collection);
    size_t same = 0, most = std::min(walked.size(), frames_.size());
    while (same < most && frames_[same].site == walked[walked.size() - 1 - same])
      ++same;
    frames_.resize(same);
    switch (extend(walked.first(walked.size() - same), epoch, find)) {
    case Outcome::kUnknownSite:
      return std::nullopt;
    case Outcome::kDone:
      if (leaf() == 0 || tree.touch_since(collection_, leaf(), epoch))
        return leaf();
      break;
    case Outcome::kCollected:
      break; // a collection may have freed what we stand on: again from the root
    }
  }
}

PythonPath::Outcome PythonPath::extend(std::span<const Site> walked, EpochId epoch,
                                       FindSiteName find) {
  ContextTree &tree = ContextTree::instance();
  std::string name;
  frames_.reserve(frames_.size() + walked.size());
  for (size_t left = walked.size(); left != 0; --left) {
    const Site &site = walked[left - 1];
    ContextId parent = leaf();
    Step &step = steps_[hash_of(site, parent) % kSteps];
    bool is_known = step.site == site && step.parent == parent && step.collection == collection_;
    if (!is_known || site.code == nullptr) {
      if (!find(site, name))
        return Outcome::kUnknownSite;
      ContextId id = name == kPathStart ? 0 : parent;
      if (!name.empty() && name != kPathStart) {
        id = tree.child_since(collection_, parent, name, FrameKind::kPython, 0, epoch);
        if (id == ContextTree::kStale)
          return Outcome::kCollected;
      }
      step = {site, parent, id, collection_};
    }
    frames_.push_back({site, step.id});
  }
  return Outcome::kDone;
}

} // namespace proton
