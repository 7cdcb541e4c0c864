#include "collector/cupti/callbacks/nvtx_source.h"

#include <string>
#include <utility>

#include "collector/gpu/launches/launch_thread.h"

namespace proton {

void RegisteredTexts::add(const void *handle, std::string text) {
  std::lock_guard lock(mutex_);
  if (texts_.size() < kMost || texts_.contains(handle))
    texts_.insert_or_assign(handle, std::move(text));
}

std::string RegisteredTexts::find(const void *handle) const {
  std::lock_guard lock(mutex_);
  auto found = texts_.find(handle);
  return found == texts_.end() ? std::string() : found->second;
}

namespace {

void append_utf8(std::string &text, uint32_t point) {
  auto byte = [&text](uint32_t value) { text.push_back(static_cast<char>(value)); };
  if (point < 0x80) {
    byte(point);
  } else if (point < 0x800) {
    byte(0xC0 | point >> 6);
    byte(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    byte(0xE0 | point >> 12);
    byte(0x80 | (point >> 6 & 0x3F));
    byte(0x80 | (point & 0x3F));
  } else {
    byte(0xF0 | (point >> 18 & 0x07));
    byte(0x80 | (point >> 12 & 0x3F));
    byte(0x80 | (point >> 6 & 0x3F));
    byte(0x80 | (point & 0x3F));
  }
}

std::string utf8(const wchar_t *message) {
  std::string text;
  for (; message && *message; ++message)
    append_utf8(text, static_cast<uint32_t>(*message));
  return text;
}

/// Whether a range ends by a call of NVTX's payload extension, which libcupti does not hand on: it
/// would stay open. NCCL knows the payload of those that make a communicator only at their end.
bool ends_unheard(std::string_view name) {
  return name.starts_with("ncclCommInit") || name.starts_with("ncclCommSplit") ||
         name.starts_with("ncclCommShrink") || name.starts_with("ncclCommGrow");
}

void push(const void *domain, std::string_view name) {
  if (domain && ends_unheard(name))
    return;
  if (LaunchThread *thread = this_launch_thread())
    thread->markers.push(domain, name.empty() ? "<nvtx range>" : name);
}

void pop(const void *domain) noexcept {
  if (LaunchThread *thread = this_launch_thread())
    thread->markers.pop(domain);
}

} // namespace

void NvtxSource::handle(int, uint32_t cbid, const void *data) noexcept {
  try {
    dispatch(cbid, *static_cast<const cupti::NvtxData *>(data));
  } catch (...) { // no memory: the range is lost, and its end may close another one
  }
}

void NvtxSource::dispatch(uint32_t cbid, const cupti::NvtxData &call) {
  const void *parameters = call.function_params;
  if (cbid == cupti::kNvtxRangePop)
    pop(nullptr);
  else if (cbid == cupti::kNvtxDomainRangePop)
    pop(parameters ? static_cast<const cupti::NvtxDomainRangePopParams *>(parameters)->domain
                   : nullptr);
  else if (cbid == cupti::kNvtxDomainRegisterStringA || cbid == cupti::kNvtxDomainRegisterStringW)
    register_text(cbid, call);
  else if (parameters)
    push_of(cbid, parameters);
}

void NvtxSource::push_of(uint32_t cbid, const void *parameters) {
  switch (cbid) {
  case cupti::kNvtxRangePushA: {
    const char *text = static_cast<const cupti::NvtxRangePushAParams *>(parameters)->message;
    push(nullptr, text ? text : "");
    break;
  }
  case cupti::kNvtxRangePushW:
    push(nullptr, utf8(static_cast<const cupti::NvtxRangePushWParams *>(parameters)->message));
    break;
  case cupti::kNvtxRangePushEx:
    push(nullptr,
         message_of(static_cast<const cupti::NvtxRangePushExParams *>(parameters)->attributes));
    break;
  default: {
    const auto &domain = *static_cast<const cupti::NvtxDomainRangePushExParams *>(parameters);
    push(domain.domain, message_of(domain.core.attributes));
    break;
  }
  }
}

void NvtxSource::register_text(uint32_t cbid, const cupti::NvtxData &call) {
  const auto *text =
      static_cast<const cupti::NvtxDomainRegisterStringParams *>(call.function_params);
  const auto *handle = static_cast<const void *const *>(call.return_value);
  if (!text || !text->text || !handle || !*handle)
    return;
  bool is_wide = cbid == cupti::kNvtxDomainRegisterStringW;
  texts_.add(*handle, is_wide ? utf8(static_cast<const wchar_t *>(text->text))
                              : std::string(static_cast<const char *>(text->text)));
}

std::string NvtxSource::message_of(const void *attributes) const {
  namespace at = cupti::nvtx_event_offset;
  if (!attributes || cupti::read<uint16_t>(attributes, at::kSize) < at::kBytes)
    return {};
  const void *message = cupti::read<const void *>(attributes, at::kMessage);
  if (!message)
    return {};
  switch (cupti::read<int32_t>(attributes, at::kMessageType)) {
  case cupti::kNvtxMessageAscii:
    return static_cast<const char *>(message);
  case cupti::kNvtxMessageUnicode:
    return utf8(static_cast<const wchar_t *>(message));
  case cupti::kNvtxMessageRegistered:
    return texts_.find(message);
  default:
    return {};
  }
}

} // namespace proton
