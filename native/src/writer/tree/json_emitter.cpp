#include "writer/tree/json_emitter.h"

#include <algorithm>

#include "writer/bytes/json_text.h"
#include "writer/bytes/utf8_text.h"

namespace proton {
namespace {

constexpr size_t kIndent = 4;
// Deeper lines are not indented further: blanks would outgrow the values.
constexpr size_t kMaxIndentLevel = 64;

} // namespace

JsonEmitter::JsonEmitter(JsonStyle style) : indents_(style == JsonStyle::kFile) {
  if (indents_)
    out_ += '\n'; // += : GCC 12 takes an assignment here for an overlapping copy
  open('[');
}

Layout JsonEmitter::layout() const {
  return {.frame_before_children = false, .sorts_keys = true, .drops_empty_leaves = false};
}

void JsonEmitter::open(char bracket) {
  out_ += bracket;
  ++level_;
  is_empty_ = true;
}

void JsonEmitter::close(char bracket) {
  --level_;
  if (!is_empty_)
    new_line();
  out_ += bracket;
  is_empty_ = false;
}

void JsonEmitter::new_line() {
  if (!indents_)
    return;
  out_ += '\n';
  out_.append(std::min(level_, kMaxIndentLevel) * kIndent, ' ');
}

// Separates the next entry from the one before.
void JsonEmitter::item() {
  if (!is_empty_)
    out_ += ',';
  new_line();
  is_empty_ = false;
}

void JsonEmitter::key(std::string_view name) {
  item();
  text(name);
  out_ += indents_ ? ": " : ":";
}

void JsonEmitter::text(std::string_view value) { append_json_text(out_, value); }

void JsonEmitter::value(int64_t number) { append_json_number(out_, number); }

void JsonEmitter::value(double number) { append_json_number(out_, number); }

template <typename Number> void JsonEmitter::value(const std::vector<Number> &numbers) {
  open('[');
  for (Number number : numbers) {
    item();
    value(number);
  }
  close(']');
}

void JsonEmitter::open_node(const StatedAggregations &stated) {
  item();
  open('{');
  if (stated.empty())
    return;
  key("aggregations");
  open('{');
  for (const auto &[metric, aggregation] : stated) {
    key(metric);
    text(aggregation);
  }
  close('}');
}

void JsonEmitter::frame(std::string_view name, const std::vector<MetricField> &metrics) {
  key("frame");
  open('{');
  key("name");
  text(name);
  key("type");
  text("function");
  close('}');
  key("metrics");
  open('{');
  for (const MetricField &metric : metrics) {
    key(metric.key);
    std::visit([this](const auto &held) { value(held); }, metric.value);
  }
  close('}');
  if (name.empty()) {
    // hatchet ignores an empty name in the frame and looks beside it.
    key("name");
    text("");
  }
}

void JsonEmitter::open_children(size_t) {
  key("children");
  open('[');
}

void JsonEmitter::close_children() { close(']'); }

void JsonEmitter::close_node() { close('}'); }

void JsonEmitter::device(const Device &device) {
  open('{');
  key("arch");
  text(valid_utf8(device.arch));
  key("bus_width");
  value(device.bus_width_bits);
  key("clock_rate");
  value(device.clock_rate_khz);
  key("memory_clock_rate");
  value(device.memory_clock_rate_khz);
  key("num_sms");
  value(device.num_sms);
  close('}');
}

std::string JsonEmitter::finish(const DeviceMap &devices) {
  item();
  open('{');
  for (const auto &[kind, by_index] : devices) {
    key(kind);
    open('{');
    for (const auto &[index, facts] : by_index) {
      key(index);
      device(facts);
    }
    close('}');
  }
  close('}');
  close(']');
  if (indents_)
    out_ += '\n';
  return std::move(out_);
}

} // namespace proton
