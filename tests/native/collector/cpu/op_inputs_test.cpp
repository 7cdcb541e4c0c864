#include "collector/cpu/op_inputs.h"

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "calltree/context_tree.h"
#include "check.h"
#include "collector/cpu/op_stack.h"
#include "context/thread/host_range.h"
#include "context/thread/thread_state.h"
#include "record/device.h"

using namespace proton;

namespace {

constexpr uint32_t kTensor = 1, kList = 14, kInt = 5, kBool = 10, kDouble = 3, kNone = 0;
constexpr uint32_t kFloat = 6, kHalf = 5;

InputLayout layout() {
  return {40, 16, 8, 24, kTensor, kList, kInt, kBool, kDouble, {{kFloat, "f32"}, {kHalf, "f16"}}};
}

struct Argument {
  uint64_t payload = 0;
  uint64_t tag = kNone;
};

/// A tensor, a list and an operator as the layout has them.
struct Tensor {
  explicit Tensor(std::vector<int64_t> shape, uint32_t dtype = kFloat) : sizes(std::move(shape)) {
    words[1] = dtype;
    words[2] = sizes.size();
    if (sizes.size() > 5)
      words[3] = reinterpret_cast<uint64_t>(sizes.data());
    else if (!sizes.empty())
      std::memcpy(&words[3], sizes.data(), sizes.size() * sizeof(int64_t));
  }
  Argument argument() const { return {reinterpret_cast<uint64_t>(words), kTensor}; }
  std::vector<int64_t> sizes;
  uint64_t words[8] = {};
};

struct List {
  explicit List(std::vector<Argument> of) : elements(std::move(of)) {
    words[3] = reinterpret_cast<uint64_t>(elements.data());
    words[4] = words[3] + elements.size() * sizeof(Argument);
  }
  Argument argument() const { return {reinterpret_cast<uint64_t>(words), kList}; }
  std::vector<Argument> elements;
  uint64_t words[6] = {};
};

struct Operator {
  Operator(const char *called, std::vector<Argument> given)
      : name(called), arguments(std::move(given)) {
    words[5] = reinterpret_cast<uint64_t>(arguments.data());
    words[6] = arguments.size();
  }
  const char *name;
  std::vector<Argument> arguments;
  uint64_t words[8] = {};
};

Argument integer(int64_t value) { return {static_cast<uint64_t>(value), kInt}; }
Argument boolean(bool value) { return {0xffffff00u | (value ? 1u : 0u), kBool}; }
Argument number(double value) {
  Argument argument{0, kDouble};
  std::memcpy(&argument.payload, &value, sizeof(value));
  return argument;
}

std::string signature(const OpInputs &inputs) {
  const VariantRecord *found = find_variant(inputs.variant);
  return found ? found->signature : "none";
}

/// Arguments are read while it lives.
struct Reading {
  Reading() {
    set_input_layout(layout(), {{"aten::mm", false}, {"aten::convolution", true}});
    set_inputs_read(true);
    SessionState now;
    now.epoch = now.generation = 1;
    now.active = now.wants_ops = true;
    publish_session_state(now);
    set_op_depth(kDefaultOpDepth);
    done().clear();
    set_work_listener([](int32_t work) noexcept { done().push_back(work); });
  }
  ~Reading() {
    publish_session_state({});
    set_inputs_read(false);
    set_work_listener(nullptr);
  }
  static std::vector<int32_t> &done() {
    static std::vector<int32_t> all;
    return all;
  }
};

const char *name_of(const void *token) {
  // The words are a member of the operator.
  const auto *words = static_cast<const unsigned char *>(token);
  return reinterpret_cast<const Operator *>(words - offsetof(Operator, words))->name;
}
void begin(const Operator &op) { begin_op(op.words, OpKind::kOperator, name_of); }
void end(const Operator &op) { end_op(op.words); }

std::string done() {
  std::string text;
  for (int32_t work : Reading::done()) {
    Work found = works(static_cast<size_t>(work)).front();
    text += found.name + "(" + found.signature + ")";
  }
  return text;
}

} // namespace

TEST(arguments_are_read_as_text) {
  set_input_layout(layout(), {});
  Tensor scalar({}), matrix({64, 128}), deep({1, 2, 3, 4, 5, 6}, kHalf), undefined({2}, 77);
  List strides({integer(2), integer(-3)}), tensors({matrix.argument(), scalar.argument()}),
      empty({});
  Operator op("aten::any", {matrix.argument(), strides.argument(), deep.argument(), Argument{},
                            undefined.argument(), tensors.argument(), boolean(true), integer(7),
                            number(0.5), empty.argument(), Argument{12, 99}});
  CHECK_EQ(inputs_text(op.words, false), "f32[64,128], f16[1,2,3,4,5,6], [f32[64,128], f32[]]");
  CHECK_EQ(
      inputs_text(op.words, true),
      "f32[64,128], [2, -3], f16[1,2,3,4,5,6], None, None, [f32[64,128], f32[]], True, 7, 0.5, "
      "[], None");
}

TEST(long_lists_are_cut_in_the_text_and_whole_in_the_identity) {
  set_input_layout(layout(), {});
  Tensor one({1}), other({2});
  std::vector<Argument> many(20, one.argument());
  List first(many);
  many.back() = other.argument();
  List second(many);
  Operator op("aten::cat", {first.argument()}), changed("aten::cat", {second.argument()});
  CHECK(inputs_text(op.words, false).ends_with("f32[1], and 12 more]"));
  CHECK(read_inputs(op.words, "aten::cat").variant >= 0);
}

TEST(equal_arguments_are_one_variant) {
  set_input_layout(layout(), {});
  Tensor small({4, 4}), alike({4, 4}), half({4, 4}, kHalf), large({8, 2});
  auto variant = [](const Tensor &tensor) {
    Operator op("aten::relu", {tensor.argument()});
    return read_inputs(op.words, "aten::relu").variant;
  };
  CHECK_EQ(variant(small), variant(alike));
  CHECK(variant(small) != variant(half));
  CHECK(variant(small) != variant(large));
}

TEST(numbers_make_variants_only_where_work_needs_them) {
  Reading reading;
  Tensor image({1, 2});
  auto read = [&](const char *name, int64_t stride) {
    Operator op(name, {image.argument(), integer(stride)});
    return signature(read_inputs(op.words, name));
  };
  CHECK_EQ(read("aten::add", 1), read("aten::add", 2));
  CHECK_EQ(read("aten::convolution", 1), "f32[1,2], 1");
  CHECK_EQ(read("aten::convolution", 2), "f32[1,2], 2");
}

TEST(an_operator_without_arguments_has_no_variant) {
  Reading reading;
  Operator none("aten::empty", {integer(4)}), lost("aten::empty", {});
  lost.words[5] = 0;
  CHECK_EQ(read_inputs(none.words, "aten::empty").variant, -1);
  CHECK_EQ(read_inputs(lost.words, "aten::empty").variant, -1);
}

TEST(operators_with_other_shapes_are_other_paths) {
  Reading reading;
  Tensor small({4, 4}), large({8, 8});
  Operator one("aten::relu", {small.argument()}), other("aten::relu", {large.argument()});
  ContextId ids[3] = {};
  const Operator *order[] = {&one, &other, &one};
  for (int i = 0; i < 3; ++i) {
    begin(*order[i]);
    ids[i] = this_thread().stack.own();
    CHECK_EQ(ContextTree::instance().node(ids[i]).name.text(), "aten::relu");
    end(*order[i]);
  }
  CHECK(ids[0] != ids[1]);
  CHECK_EQ(ids[0], ids[2]);
}

TEST(work_is_that_of_the_outermost_operator_with_a_formula) {
  Reading reading;
  Tensor matrix({4, 4});
  Operator outer("aten::convolution", {matrix.argument()}), inner("aten::mm", {matrix.argument()}),
      other("aten::mm", {matrix.argument()});
  begin(outer);
  begin(inner);
  end(inner);
  end(outer);
  begin(other);
  end(other);
  CHECK_EQ(done(), "aten::convolution(f32[4,4])aten::mm(f32[4,4])");
}

TEST(work_below_the_depth_of_frames_counts) {
  Reading reading;
  Tensor matrix({4, 4});
  std::deque<Operator> around;
  for (int i = 0; i < 4; ++i)
    begin(around.emplace_back("aten::matmul", std::vector{matrix.argument()}));
  Operator deep("aten::mm", {matrix.argument()});
  begin(deep);
  CHECK_EQ(current_path().size(), size_t{kDefaultOpDepth});
  end(deep);
  for (; !around.empty(); around.pop_back())
    end(around.back());
  CHECK_EQ(done(), "aten::mm(f32[4,4])");
}

TEST(an_operator_that_calls_itself_has_the_types_that_are_computed) {
  Reading reading; // as autocast does
  Tensor given({4, 4}), cast({4, 4}, kHalf);
  Operator outer("aten::mm", {given.argument()}), inner("aten::mm", {cast.argument()});
  begin(outer);
  begin(inner);
  end(inner);
  end(outer);
  CHECK_EQ(done(), "aten::mm(f16[4,4])");
}

TEST(operators_on_tensors_without_memory_do_no_work) {
  Reading reading;
  InputLayout marked = layout();
  marked.device = 63;
  marked.meta = 14;
  set_input_layout(marked, {{"aten::mm", false}});
  Tensor real({4, 4}), fake({4, 4});
  reinterpret_cast<unsigned char *>(fake.words)[63] = 14;
  Operator traced("aten::mm", {fake.argument()}), wrapper("aten::mm", {real.argument()});
  begin(traced);
  end(traced);
  begin(wrapper); // as a compiler's own tensors around those without memory
  begin(traced);
  end(traced);
  end(wrapper);
  CHECK_EQ(done(), "");
  begin(wrapper);
  end(wrapper);
  CHECK_EQ(done(), "aten::mm(f32[4,4])");
}

TEST(muted_operators_do_no_work) {
  Reading reading;
  Tensor matrix({4, 4});
  Operator op("aten::mm", {matrix.argument()});
  mute_ops();
  begin(op);
  end(op);
  unmute_ops();
  CHECK_EQ(done(), "");
}

TEST(tensors_of_a_running_operator_can_be_visited) {
  set_input_layout(layout(), {});
  Tensor one({3}), two({4, 5}, kHalf);
  List list({two.argument()});
  Operator op("c10d::allreduce_", {one.argument(), integer(3), list.argument()});
  std::string text;
  for_each_tensor(op.words, [&](std::string_view dtype, std::span<const int64_t> sizes) {
    text += std::string(dtype) + std::to_string(sizes.size()) + ":" + std::to_string(sizes.back());
  });
  CHECK_EQ(text, "f321:3f162:5");
}
