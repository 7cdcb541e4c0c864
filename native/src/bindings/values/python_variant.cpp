#include "bindings/values/python_variant.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "support/error.h"

namespace py = pybind11;

namespace proton {
namespace {

void read_extent(const std::string &key, py::handle value, uint32_t (&extent)[3]) {
  auto sizes = value.cast<std::vector<uint32_t>>();
  if (sizes.empty() || sizes.size() > 3)
    throw Error(ErrorCode::kUsage, "variant '" + key + "' needs one to three sizes, not " +
                                       std::to_string(sizes.size()));
  std::fill(std::begin(extent), std::end(extent), 1u);
  std::copy(sizes.begin(), sizes.end(), std::begin(extent));
}

/// Hashes come as numbers or as the hexadecimal text that compilers print.
uint64_t read_hash(py::handle value) {
  if (py::isinstance<py::str>(value))
    return std::hash<std::string>{}(value.cast<std::string>());
  return value.cast<uint64_t>();
}

} // namespace

PythonVariant::PythonVariant(const py::object &mapping) {
  if (mapping.is_none())
    return;
  is_given_ = true;
  for (auto [key_object, value] : py::dict(mapping)) {
    auto key = key_object.cast<std::string>();
    if (key == "code_hash")
      record_.code_hash = read_hash(value);
    else if (key == "grid")
      read_extent(key, value, record_.grid);
    else if (key == "block")
      read_extent(key, value, record_.block);
    else if (key == "shared_bytes")
      record_.shared_bytes = value.cast<uint32_t>();
    else if (key == "signature")
      signature_ = value.cast<std::string>();
    else
      throw Error(ErrorCode::kUsage,
                  "unknown variant key '" + key +
                      "'; choose code_hash, grid, block, shared_bytes or signature");
  }
  if (!signature_.empty())
    record_.signature = signature_.c_str();
}

} // namespace proton
