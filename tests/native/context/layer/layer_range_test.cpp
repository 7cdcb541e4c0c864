#include "context/layer/layer_range.h"

#include <string>
#include <thread>
#include <vector>

#include "calltree/context_tree.h"
#include "check.h"
#include "context/thread/thread_state.h"

using namespace proton;

namespace {

thread_local uint64_t t_node = 0, t_thread = 0;

uint64_t next_node() { return t_node; }
uint64_t this_number() { return t_thread; }

/// A session that wants layers, and a thread of the target with this number.
struct Listening {
  explicit Listening(uint64_t thread = 1) {
    t_thread = thread;
    SessionState state;
    state.epoch = 1;
    state.generation = 1;
    state.active = state.wants_layers = true;
    publish_session_state(state);
    set_node_numbers({next_node, this_number});
  }
  ~Listening() {
    publish_session_state({});
    set_node_numbers({});
    set_current_layers(nullptr);
  }
};

/// A layer in those of the thread, for a while.
class Layer {
public:
  explicit Layer(const char *name)
      : open_(enter_layer(layer_below(current_layers(), name), session_state())) {}
  ~Layer() { exit_layer(open_); }
  Layer(const Layer &) = delete;
  Layer &operator=(const Layer &) = delete;

private:
  OpenLayer open_;
};

/// The frames of the thread.
std::string stack() {
  std::string text;
  for (const NamedFrame &frame : current_path())
    text += "/" + std::string(frame.name.text());
  return text;
}

/// Runs a backward node, and returns the frames around it.
std::string around(int64_t node, uint64_t thread) {
  OpenBackward backward = enter_backward(node, thread);
  std::string text = stack();
  exit_backward(backward);
  return text;
}

} // namespace

TEST(equal_paths_are_one_object) {
  const LayerPath *model = layer_below(nullptr, "Model");
  CHECK(layer_below(nullptr, "Model") == model);
  CHECK(layer_below(model, "Model") != model);
  CHECK_EQ(layer_below(model, "Model")->depth, 2u);
}

TEST(a_node_stands_below_the_layers_that_were_open_when_it_was_made) {
  Listening listening(11);
  t_node = 5;
  {
    Layer model("Model");
    t_node = 6;
    {
      Layer first("first");
      t_node = 8;
    }
    Layer second("second");
    t_node = 9;
  }
  CHECK_EQ(stack(), "");
  CHECK_EQ(around(4, 11), "/<backward>");
  CHECK_EQ(around(5, 11), "/Model/<backward>");
  CHECK_EQ(around(7, 11), "/Model/first/<backward>");
  CHECK_EQ(around(8, 11), "/Model/second/<backward>");
  CHECK_EQ(around(9, 11), "/<backward>");
  CHECK_EQ(around(7, 12), "/<backward>"); // of a thread that made none
  CHECK_EQ(stack(), "");
}

TEST(a_node_without_a_number_is_of_the_layers_of_the_node_before) {
  Listening listening(13);
  t_node = 1;
  {
    Layer model("Model");
    t_node = 2;
  }
  CHECK_EQ(around(1, 13), "/Model/<backward>");
  CHECK_EQ(around(kNoNumber, 0), "/Model/<backward>");
}

TEST(nodes_run_on_other_threads_than_those_that_made_them) {
  Listening listening(14);
  t_node = 3;
  {
    Layer model("Model");
    t_node = 4;
  }
  std::string seen;
  std::thread([&] { seen = around(3, 14); }).join();
  CHECK_EQ(seen, "/Model/<backward>");
}

TEST(layers_that_the_thread_works_for_are_not_repeated) {
  Listening listening(15);
  t_node = 1;
  Layer model("Model");
  {
    Layer first("first");
    t_node = 2;
  }
  CHECK_EQ(around(1, 15), "/Model/first/<backward>");
}

TEST(a_node_made_by_a_node_is_of_the_same_layers) {
  Listening listening(16);
  t_node = 1;
  {
    Layer model("Model");
    t_node = 2;
  }
  OpenBackward backward = enter_backward(1, 16);
  t_node = 3; // of a second backward pass
  exit_backward(backward);
  CHECK_EQ(around(2, 16), "/Model/<backward>");
  CHECK_EQ(around(3, 16), "/<backward>");
}

TEST(old_nodes_are_forgotten_and_newer_ones_are_not) {
  Listening listening(17);
  constexpr uint64_t kSteps = 40000;
  const LayerPath *model = layer_below(nullptr, "Model");
  for (uint64_t step = 0; step < kSteps; ++step) {
    t_node = step;
    set_current_layers(step % 2 == 0 ? model : nullptr);
  }
  CHECK(layers_of_node(0, 17) == nullptr);
  CHECK(layers_of_node(kSteps - 2, 17) == model);
  CHECK(layers_of_node(kSteps - 1, 17) == nullptr);
  CHECK(layers_of_node(kSteps - 30000, 17) == model);
}

TEST(a_thread_that_takes_the_place_of_another_has_no_nodes_of_it) {
  Listening listening(1);
  t_node = 1;
  {
    Layer model("Model");
    t_node = 2;
  }
  t_thread = 1 + 128; // lies in the same place
  set_current_layers(nullptr);
  CHECK(layers_of_node(1, 1) == nullptr);
  CHECK(layers_of_node(1, 129) == nullptr);
}

TEST(a_scope_that_a_layer_left_open_stays_and_the_layer_goes_with_it) {
  Listening listening(18);
  SessionState now = session_state();
  {
    Layer model("Model");
    open_scope(hashed("scope"), FrameKind::kScope, now);
  }
  CHECK_EQ(stack(), "/Model/scope");
  close_top(now);
  CHECK_EQ(stack(), "");
}

TEST(without_a_session_that_wants_layers_no_frame_is_opened) {
  SessionState state;
  state.epoch = 1;
  state.active = true;
  publish_session_state(state);
  CHECK_EQ(around(1, 1), "");
  publish_session_state({});
}

TEST(threads_note_and_look_up_at_the_same_time) {
  Listening listening(19);
  const LayerPath *model = layer_below(nullptr, "Model");
  std::vector<std::thread> threads;
  for (uint64_t number = 19; number < 23; ++number)
    threads.emplace_back([number, model] {
      t_thread = number;
      for (uint64_t step = 0; step < 20000; ++step) {
        t_node = step;
        set_current_layers(step % 2 == 0 ? model : nullptr);
        const LayerPath *found = layers_of_node(step / 2, 19 + step % 4);
        CHECK(found == nullptr || found == model);
      }
      set_current_layers(nullptr);
    });
  for (std::thread &each : threads)
    each.join();
}
