#include "writer/tree/msgpack_emitter.h"

#include "writer/bytes/utf8_text.h"

namespace proton {

Layout MsgpackEmitter::layout() const {
  return {.frame_before_children = true, .sorts_keys = false, .drops_empty_leaves = true};
}

template <typename Number> void MsgpackEmitter::value(const std::vector<Number> &numbers) {
  out_.array(numbers.size());
  for (Number number : numbers)
    value(number);
}

void MsgpackEmitter::open_node(const StatedAggregations &stated) {
  out_.map(stated.empty() ? 3 : 4);
  if (stated.empty())
    return;
  out_.text("aggregations");
  out_.map(stated.size());
  for (const auto &[metric, aggregation] : stated) {
    out_.text(metric);
    out_.text(aggregation);
  }
}

void MsgpackEmitter::frame(std::string_view name, const std::vector<MetricField> &metrics) {
  out_.text("frame");
  out_.map(2);
  out_.text("name");
  out_.text(name);
  out_.text("type");
  out_.text("function");
  out_.text("metrics");
  out_.map(metrics.size());
  for (const MetricField &metric : metrics) {
    out_.text(metric.key);
    std::visit([this](const auto &held) { value(held); }, metric.value);
  }
}

void MsgpackEmitter::open_children(size_t count) {
  out_.text("children");
  out_.array(count);
}

void MsgpackEmitter::device(const Device &device) {
  out_.map(5);
  out_.text("clock_rate");
  out_.integer(device.clock_rate_khz);
  out_.text("memory_clock_rate");
  out_.integer(device.memory_clock_rate_khz);
  out_.text("bus_width");
  out_.integer(device.bus_width_bits);
  out_.text("arch");
  out_.text(valid_utf8(device.arch));
  out_.text("num_sms");
  out_.integer(device.num_sms);
}

std::string MsgpackEmitter::finish(const DeviceMap &devices) {
  out_.map(devices.size());
  for (const auto &[kind, by_index] : devices) {
    out_.text(kind);
    out_.map(by_index.size());
    for (const auto &[index, facts] : by_index) {
      out_.text(index);
      device(facts);
    }
  }
  return out_.take();
}

} // namespace proton
