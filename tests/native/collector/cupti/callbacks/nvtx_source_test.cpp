// NVTX ranges as scopes, among our own scopes.
#include "collector/cupti/callbacks/nvtx_source.h"

#include <cstring>

#include "check.h"
#include "collector/cupti/control/cupti_session.h"
#include "collector/gpu/launches/launch_thread.h"

using namespace proton;

namespace {

CuptiOptions with_nvtx() {
  CuptiOptions options = double_options();
  options.nvtx = true;
  return options;
}

/// Calls back as the library does, where the double has no control.
void call(uint32_t cbid, const void *parameters, const void *result = nullptr) {
  static NvtxSource source;
  cupti::NvtxData data{"", parameters, result};
  source.handle(cupti::kDomainNvtx, cbid, &data);
}

struct Attributes {
  alignas(8) char bytes[cupti::nvtx_event_offset::kBytes] = {};

  Attributes(int32_t type, const void *message) {
    namespace at = cupti::nvtx_event_offset;
    uint16_t size = sizeof bytes;
    std::memcpy(bytes + at::kSize, &size, sizeof size);
    std::memcpy(bytes + at::kMessageType, &type, sizeof type);
    std::memcpy(bytes + at::kMessage, &message, sizeof(const void *));
  }
  const cupti::NvtxEventAttributes *get() const {
    return reinterpret_cast<const cupti::NvtxEventAttributes *>(bytes);
  }
};

} // namespace

TEST(ranges_and_scopes_nest) {
  CuptiSession session(with_nvtx());
  fake_cupti_nvtx_push("range");
  fake_cupti_launch("a", 7);
  {
    ScopeGuard scope("scope");
    fake_cupti_nvtx_push("inner");
    fake_cupti_launch("b", 7);
    fake_cupti_nvtx_pop();
  }
  fake_cupti_nvtx_pop();
  fake_cupti_launch("c", 7);
  session.stop();
  CHECK_EQ(session.tree(), "range/scope/inner/b=1 range/a=1 c=1 ");
}

TEST(a_range_that_ends_early_leaves_the_scope_inside_of_it) {
  CuptiSession session(with_nvtx());
  fake_cupti_nvtx_push("range");
  {
    ScopeGuard scope("scope");
    fake_cupti_nvtx_pop();
    fake_cupti_launch("a", 7);
  }
  fake_cupti_nvtx_push("next"); // the range is over by now
  fake_cupti_launch("b", 7);
  fake_cupti_nvtx_pop();
  fake_cupti_launch("c", 7);
  session.stop();
  CHECK_EQ(session.tree(), "range/scope/a=1 next/b=1 c=1 ");
}

TEST(ends_without_a_beginning_are_ignored) {
  CuptiSession session(with_nvtx());
  fake_cupti_nvtx_pop();
  ScopeGuard scope("scope");
  fake_cupti_nvtx_pop();
  fake_cupti_launch("a", 7);
  session.stop();
  CHECK_EQ(session.tree(), "scope/a=1 ");
}

TEST(a_range_of_nccl_whose_end_is_not_heard_is_left_out) {
  CuptiSession session(with_nvtx());
  int domain = 0;
  for (const char *text : {"ncclCommInitRankConfig", "ncclAllReduce"}) {
    Attributes attributes(cupti::kNvtxMessageAscii, text);
    cupti::NvtxDomainRangePushExParams range{&domain, {attributes.get()}};
    call(cupti::kNvtxDomainRangePushEx, &range);
  }
  fake_cupti_launch("a", 7);
  cupti::NvtxDomainRangePopParams end{&domain};
  call(cupti::kNvtxDomainRangePop, &end);
  fake_cupti_launch("b", 7);
  session.stop();
  CHECK_EQ(session.tree(), "ncclAllReduce/a=1 b=1 ");
}

TEST(texts_of_every_kind_name_ranges) {
  CuptiSession session(with_nvtx());
  cupti::NvtxRangePushWParams wide{L"caf\u00e9 \u20ac \U0001F600"};
  Attributes ascii(cupti::kNvtxMessageAscii, "plain"), registered(3, &wide);
  Attributes unicode(cupti::kNvtxMessageUnicode, L"w\u00efde");
  cupti::NvtxRangePushExParams extended{ascii.get()};
  cupti::NvtxDomainRangePushExParams in_domain{&session, {unicode.get()}};
  cupti::NvtxDomainRangePopParams end_in_domain{&session};
  cupti::NvtxRangePushExParams nameless{registered.get()};
  call(cupti::kNvtxRangePushW, &wide);
  call(cupti::kNvtxRangePushEx, &extended);
  call(cupti::kNvtxDomainRangePushEx, &in_domain);
  call(cupti::kNvtxRangePushEx, &nameless);
  fake_cupti_launch("a", 7);
  call(cupti::kNvtxRangePop, nullptr);
  call(cupti::kNvtxDomainRangePop, &end_in_domain);
  call(cupti::kNvtxRangePop, nullptr);
  call(cupti::kNvtxRangePop, nullptr);
  fake_cupti_launch("b", 7);
  session.stop();
  CHECK_EQ(session.tree(), "caf\u00e9 \u20ac \U0001F600/plain/w\u00efde/<nvtx range>/a=1 b=1 ");
}

TEST(calls_of_one_operator_share_a_row) {
  CuptiSession session(with_nvtx());
  for (const char *text :
       {"aten::mv, seq = 8, op_id = 31", "aten::mv, op_id = 32, sizes = [[4], []]",
        "aten::mv, seq = -1, op_id = 33, sizes = [[2]], input_op_ids = [(8,0)]",
        "aten::mv, seq = 9"}) {
    fake_cupti_nvtx_push(text);
    fake_cupti_launch("a", 7);
    fake_cupti_nvtx_pop();
  }
  session.stop();
  CHECK_EQ(session.tree(), "aten::mv/a=4 ");
}

TEST(other_names_with_numbers_stay) {
  for (const char *text : {"prefill, seq = 128", "load, op_id = x1", ", op_id = 5",
                           "a, op_id = ", "b, op_id = 5s", "plain"})
    CHECK(name_of_range(text) == text);
  CHECK(name_of_range("MvBackward, seq = 4, sizes = [[]]") == "MvBackward");
  CHECK(name_of_range("prefill, seq = 128, op_id = 4") == "prefill");
}

TEST(registered_texts_name_ranges) {
  CuptiSession session(with_nvtx());
  int handles[3] = {};
  const void *plain = &handles[0], *wide = &handles[1];
  cupti::NvtxDomainRegisterStringParams plain_text{&session, "ncclAllReduce"};
  cupti::NvtxDomainRegisterStringParams wide_text{&session, L"caf\u00e9"}, none{&session, nullptr};
  call(cupti::kNvtxDomainRegisterStringA, &plain_text, &plain);
  call(cupti::kNvtxDomainRegisterStringW, &wide_text, &wide);
  call(cupti::kNvtxDomainRegisterStringA, &none, &plain);
  call(cupti::kNvtxDomainRegisterStringA, &plain_text, nullptr);
  for (int &handle : handles) {
    Attributes attributes(cupti::kNvtxMessageRegistered, &handle);
    cupti::NvtxRangePushExParams parameters{attributes.get()};
    call(cupti::kNvtxRangePushEx, &parameters);
  }
  fake_cupti_launch("a", 7);
  for (int i = 0; i < 3; ++i)
    call(cupti::kNvtxRangePop, nullptr);
  session.stop();
  CHECK_EQ(session.tree(), "ncclAllReduce/caf\u00e9/<nvtx range>/a=1 ");
}

TEST(ranges_past_the_limit_count_but_are_not_scopes) {
  CuptiSession session(with_nvtx());
  constexpr int kMany = 5000;
  for (int i = 0; i < kMany; ++i)
    fake_cupti_nvtx_push("r");
  for (int i = 0; i < kMany; ++i)
    fake_cupti_nvtx_pop();
  fake_cupti_launch("a", 7);
  session.stop();
  CHECK_EQ(session.tree(), "a=1 ");
}

TEST(ranges_are_nothing_without_the_option) {
  CuptiSession session;
  fake_cupti_nvtx_push("range");
  fake_cupti_launch("a", 7);
  fake_cupti_nvtx_pop();
  session.stop();
  CHECK_EQ(session.tree(), "a=1 ");
}
