// MessagePack as upstream writes it: frame, metrics, children; empty leaves left out.
#pragma once

#include "writer/bytes/msgpack_bytes.h"
#include "writer/tree/emitter.h"

namespace proton {

/// Writes `.hatchet_msgpack`. NaN and infinities become nil.
class MsgpackEmitter final : public Emitter {
public:
  MsgpackEmitter() { out_.array(2); }

  Layout layout() const override;
  void open_node(const StatedAggregations &stated) override;
  void frame(std::string_view name, const std::vector<MetricField> &metrics) override;
  void open_children(size_t count) override;
  void close_children() override {}
  void close_node() override {}
  std::string finish(const DeviceMap &devices) override;

private:
  void value(int64_t number) { out_.integer(number); }
  void value(double number) { out_.real(number); }
  void value(const std::string &string) { out_.text(string); }
  template <typename Number> void value(const std::vector<Number> &numbers);
  void device(const Device &device);

  MsgpackBytes out_;
};

} // namespace proton
