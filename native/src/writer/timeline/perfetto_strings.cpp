#include "writer/timeline/perfetto_strings.h"

#include "writer/bytes/proto_bytes.h"
#include "writer/bytes/utf8_text.h"
#include "writer/timeline/perfetto_fields.h"

namespace proton {

void PerfettoStrings::add(uint32_t field, uint32_t iid, std::string_view text) {
  std::string scratch;
  ProtoBytes proto(new_);
  size_t entry = proto.open(field);
  proto.count(perfetto::kInternedId, iid);
  proto.text(perfetto::kInternedText, valid_utf8(text, scratch));
  proto.close(entry);
}

uint32_t PerfettoStrings::event_name(const Name &name) {
  auto [found, is_new] = event_names_.try_emplace(name, event_name_count_ + 1);
  if (is_new)
    add(perfetto::kEventNames, ++event_name_count_, name.text());
  return found->second;
}

uint32_t PerfettoStrings::launch_name(const Name &name) {
  auto [found, is_new] = launch_names_.try_emplace(name, event_name_count_ + 1);
  if (is_new)
    add(perfetto::kEventNames, ++event_name_count_, "launch " + std::string(name.text()));
  return found->second;
}

uint32_t PerfettoStrings::annotation_name(const Name &name) {
  auto [found, is_new] =
      annotation_names_.try_emplace(name, static_cast<uint32_t>(annotation_names_.size() + 1));
  if (is_new)
    add(perfetto::kAnnotationNames, found->second, name.text());
  return found->second;
}

uint32_t PerfettoStrings::call_stack(uint32_t node) {
  auto [found, is_new] =
      call_stacks_.try_emplace(node, static_cast<uint32_t>(call_stacks_.size() + 1));
  if (is_new)
    add(perfetto::kAnnotationTexts, found->second, nodes_.call_stack(node));
  return found->second;
}

void PerfettoStrings::add_category(uint32_t iid, std::string_view name) {
  add(perfetto::kCategories, iid, name);
}

std::string PerfettoStrings::take_new() { return std::exchange(new_, std::string()); }

} // namespace proton
