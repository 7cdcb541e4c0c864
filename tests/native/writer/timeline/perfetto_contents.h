// What stands in a Perfetto file, for tests: slices with their parents, tracks and counters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace perfetto_file {

struct Track {
  uint64_t uuid = 0;
  uint64_t parent = 0;
  std::string name; ///< of the track, its process or its thread
  int64_t pid = 0;
  int64_t tid = 0;
  bool is_counter = false;
  std::string unit;
};

struct Slice {
  int64_t start_ns = 0;
  int64_t end_ns = -1; ///< -1: never closed
  uint64_t track = 0;
  std::string name;
  std::string category;
  int depth = 0;
  int parent = -1; ///< index of a slice
  bool is_instant = false;
  std::map<std::string, std::string> annotations;
  std::vector<uint64_t> flows;
};

struct Counter {
  int64_t at_ns = 0;
  uint64_t track = 0;
  double value = 0;
};

struct Trace {
  std::vector<Slice> slices; ///< by time
  std::vector<Counter> counters;
  std::map<uint64_t, Track> tracks;
  size_t errors = 0; ///< ends without a beginning, slices never closed

  std::string track_name(const Slice &slice) const { return tracks.at(slice.track).name; }
  std::vector<const Slice *> named(const std::string &name) const {
    std::vector<const Slice *> found;
    for (const Slice &slice : slices)
      if (slice.name == name)
        found.push_back(&slice);
    return found;
  }
  const Slice &one(const std::string &name) const {
    auto found = named(name);
    if (found.size() != 1)
      throw std::runtime_error(std::to_string(found.size()) + " slices are called " + name);
    return *found.front();
  }
};

} // namespace perfetto_file
