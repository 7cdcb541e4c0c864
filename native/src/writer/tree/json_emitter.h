// JSON text as upstream writes it: alphabetical keys, indent 4 or none.
#pragma once

#include "writer/tree/emitter.h"

namespace proton {

enum class JsonStyle {
  kFile,    ///< an empty line, indent 4 down to level 64, a newline at the end
  kCompact, ///< no white space
};

/// Writes `.hatchet`. NaN and infinities become null.
class JsonEmitter final : public Emitter {
public:
  explicit JsonEmitter(JsonStyle style);

  Layout layout() const override;
  void open_node(const StatedAggregations &stated) override;
  void frame(std::string_view name, const std::vector<MetricField> &metrics) override;
  void open_children(size_t count) override;
  void close_children() override;
  void close_node() override;
  std::string finish(const DeviceMap &devices) override;

private:
  void open(char bracket);
  void close(char bracket);
  void item();
  void new_line();
  void key(std::string_view text);
  void text(std::string_view value);
  void value(int64_t number);
  void value(double number);
  void value(const std::string &string) { text(string); }
  template <typename Number> void value(const std::vector<Number> &numbers);
  void device(const Device &device);

  std::string out_;
  bool indents_;
  bool is_empty_ = true; ///< the innermost container has no entry yet
  size_t level_ = 0;
};

} // namespace proton
