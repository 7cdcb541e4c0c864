// Operators of torch in call paths, their arguments, and the work that follows from them.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aggregate/consumer/aggregator.h"
#include "aggregate/consumer/given_values.h"
#include "aggregate/tree/op_work.h"
#include "bindings/module/bindings.h"
#include "bindings/values/tensor_arguments.h"
#include "collector/cpu/comm_group.h"
#include "collector/cpu/op_inputs.h"
#include "collector/cpu/op_stack.h"
#include "collector/cpu/torch_observer.h"
#include "context/python/python_lock.h"
#include "context/thread/current.h"

namespace py = pybind11;

namespace proton {
namespace {

TorchObserver::Client client_of(const std::string &source) {
  if (source == "shapes")
    return TorchObserver::kInputs;
  if (source == "collectives")
    return TorchObserver::kCollectives;
  return source == "ops" ? TorchObserver::kOpFrames : TorchObserver::kLayers;
}

/// Counts the work where the thread stands; under capture each launch of the graph does it.
void count_work(int32_t work) noexcept {
  if (work == kLostWork)
    return Aggregator::instance().dropped({"flops of an operator: too many different shapes", 1});
  try {
    std::optional<WithoutPythonLock> unlocked;
    if (is_capturing()) // which waits for the aggregator's lock
      unlocked.emplace();
    give_values_or_capture(capture_current(), {{work_metric(), int64_t{work}}});
  } catch (...) { // no memory
    Aggregator::instance().dropped({"work of an operator", 1});
  }
}

/// Has arguments of operators read from now on: (arguments, sizes, dtype, elements, tensor of an
/// object, device) in bytes and the kind of device without memory, tags of (tensors, lists,
/// integers, booleans, numbers), the names of types, (operator, whether its work needs numbers),
/// and the type of tensors in Python.
void read_torch_inputs(const std::array<uint32_t, 7> &offsets, const std::array<uint32_t, 5> &tags,
                       std::map<uint16_t, std::string> dtypes,
                       const std::vector<std::pair<std::string, bool>> &operators,
                       const py::object &tensor_type) {
  InputLayout layout{offsets[0], offsets[1], offsets[2], offsets[3], tags[0],
                     tags[1],    tags[2],    tags[3],    tags[4],    std::move(dtypes)};
  layout.device = offsets[5];
  layout.meta = static_cast<uint8_t>(offsets[6]);
  std::vector<WorkOperator> with_work;
  for (const auto &[name, needs_numbers] : operators)
    with_work.push_back({name, needs_numbers});
  set_input_layout(layout, std::move(with_work));
  set_work_listener(count_work);
  set_tensor_type(tensor_type, offsets[4]);
}

/// Name and arguments of the works from the one at `first` on.
std::vector<std::pair<std::string, std::string>> list_works(size_t first) {
  std::vector<std::pair<std::string, std::string>> list;
  for (Work &work : works(first))
    list.emplace_back(std::move(work.name), std::move(work.signature));
  return list;
}

/// Says what these works do, as (metric, amount); none where that is not known.
void set_work_values(int32_t first,
                     const std::vector<std::optional<std::pair<std::string, int64_t>>> &values) {
  py::gil_scoped_release unlocked;
  Aggregator::Held held;
  for (const auto &value : values)
    set_work_value(first++, value
                                ? WorkValue{&MetricName::of(value->first, Aggregation::kInclusive),
                                            value->second}
                                : WorkValue{});
}

} // namespace

void bind_torch(py::module_ &module) {
  module.def(
      "follow_torch",
      [](const std::string &source, bool reads_scope, uint32_t node_offset,
         uint32_t fwd_thread_offset) {
        return TorchObserver::instance().attach(client_of(source),
                                                {reads_scope, node_offset, fwd_thread_offset});
      },
      py::arg("source"), py::arg("reads_scope"), py::arg("node_offset"),
      py::arg("fwd_thread_offset"), py::pos_only());
  module.def(
      "enable_torch_records",
      [](bool enabled) { return TorchObserver::instance().enable_records(enabled); }, py::kw_only(),
      py::arg("enabled"));
  module.def(
      "leave_torch",
      [](const std::string &source) { TorchObserver::instance().detach(client_of(source)); },
      py::arg("source"), py::pos_only());
  module.def("find_comm_groups", &find_comm_groups);
  module.def("comm_group", [] {
    CommGroup group = current_comm_group();
    return std::pair(std::string(group.name), group.ranks);
  });
  module.def("read_torch_inputs", &read_torch_inputs, py::arg("offsets"), py::arg("tags"),
             py::arg("dtypes"), py::arg("operators"), py::arg("tensor_type"), py::pos_only());
  module.def("are_inputs_read", &are_inputs_read);
  module.def("works", &list_works, py::arg("first"), py::pos_only());
  module.def("set_work_values", &set_work_values, py::arg("first"), py::arg("values"),
             py::pos_only());
}

} // namespace proton
