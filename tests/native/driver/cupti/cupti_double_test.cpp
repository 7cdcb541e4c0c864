// The double of libcupti behaves like libcupti where profilers depend on it.
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "control.h"
#include "driver/cuda/cuda_abi.h"
#include "driver/cupti/cupti_library.h"

namespace cuda = proton::cuda;
namespace cupti = proton::cupti;

namespace {

struct Library {
  void *handle = dlopen("libcupti.so", RTLD_NOW | RTLD_NOLOAD);

  template <typename Function> Function find(const char *name) const {
    return reinterpret_cast<Function>(dlsym(handle, name));
  }
};

const Library &library() {
  static const Library instance;
  return instance;
}

/// A subscriber that counts what it gets.
struct Seen {
  std::atomic<uint64_t> enters{0};
  std::atomic<uint64_t> exits{0};
  std::atomic<uint64_t> failures{0};
  std::atomic<uint64_t> records{0};
  std::atomic<uint64_t> dropped{0};
  std::atomic<uint64_t> buffers{0};
  std::atomic<bool> is_on_other_thread{false};
  std::thread::id owner = std::this_thread::get_id();
  size_t buffer_bytes = 4096;
  std::vector<uint32_t> correlations; ///< of records; one buffer is completed at a time
  std::vector<std::string> resources;
};
Seen *seen = nullptr;

void on_call(void *, int domain, uint32_t cbid, const void *data) {
  if (domain == cupti::kDomainResource) {
    const auto &resource = *static_cast<const cupti::ResourceData *>(data);
    const auto &graph = *static_cast<const cupti::GraphData *>(resource.descriptor);
    uint32_t id = 0;
    library().find<cupti::function::GetGraphId>("cuptiGetGraphId")(graph.graph, &id);
    seen->resources.push_back(std::to_string(cbid) + ":" + std::to_string(id));
    return;
  }
  const auto &call = *static_cast<const cupti::CallbackData *>(data);
  if (call.site == cupti::kEnter) {
    *call.correlation_data = call.correlation_id;
    ++seen->enters;
    return;
  }
  ++seen->exits;
  seen->failures += *call.correlation_data != call.correlation_id;
  seen->failures += *static_cast<const int *>(call.function_return) != 0;
}

void on_requested(uint8_t **buffer, size_t *bytes, size_t *most_records) {
  *bytes = seen->buffer_bytes;
  *buffer = *bytes == 0 ? nullptr : static_cast<uint8_t *>(std::aligned_alloc(8, *bytes));
  *most_records = 0;
}

void on_completed(void *context, uint32_t stream, uint8_t *buffer, size_t, size_t valid) {
  ++seen->buffers;
  seen->is_on_other_thread = std::this_thread::get_id() != seen->owner;
  void *record = nullptr;
  auto next = library().find<cupti::function::ActivityGetNextRecord>("cuptiActivityGetNextRecord");
  while (next(buffer, valid, &record) == cupti::kSuccess) {
    ++seen->records;
    seen->correlations.push_back(cupti::read<uint32_t>(record, cupti::kernel_offset::kCorrelation));
  }
  size_t dropped = 0;
  library().find<cupti::function::ActivityGetNumDroppedRecords>(
      "cuptiActivityGetNumDroppedRecords")(context, stream, &dropped);
  seen->dropped += dropped;
  std::free(buffer);
}

/// Subscribes to launches and kernels for the time of one test.
class Subscription {
public:
  explicit Subscription(Seen &state) {
    seen = &state;
    CHECK_EQ(library().find<cupti::function::Subscribe>("cuptiSubscribe")(&subscriber_, on_call,
                                                                          nullptr),
             0);
    auto enable = library().find<cupti::function::EnableCallback>("cuptiEnableCallback");
    CHECK_EQ(enable(1, subscriber_, cupti::kDomainDriver, cupti::kCuLaunchKernelEx), 0);
    library().find<cupti::function::ActivityRegisterCallbacks>("cuptiActivityRegisterCallbacks")(
        on_requested, on_completed);
    library().find<cupti::function::ActivityEnable>("cuptiActivityEnable")(
        cupti::kKindConcurrentKernel);
  }

  ~Subscription() {
    flush();
    library().find<cupti::function::ActivityDisable>("cuptiActivityDisable")(
        cupti::kKindConcurrentKernel);
    library().find<cupti::function::Unsubscribe>("cuptiUnsubscribe")(subscriber_);
  }

  Subscription(const Subscription &) = delete;
  Subscription &operator=(const Subscription &) = delete;

  void flush() const {
    library().find<cupti::function::ActivityFlushAll>("cuptiActivityFlushAll")(0);
  }
  void *handle() const { return subscriber_; }

private:
  void *subscriber_ = nullptr;
};

} // namespace

TEST(launches_call_back_and_leave_records) {
  Seen state;
  const Subscription subscription(state);
  const uint32_t correlation = fake_cupti_launch("kernel", 7);
  fake_cupti_failing_launch("kernel", cuda::kErrorInvalidValue);
  subscription.flush();
  CHECK_EQ(state.enters, 2U);
  CHECK_EQ(state.exits, 2U);
  CHECK_EQ(state.failures, 1U);
  CHECK_EQ(state.records, 1U);
  CHECK_EQ(state.correlations.front(), correlation);
  CHECK(!state.is_on_other_thread);
}

TEST(full_buffers_are_completed_by_another_thread) {
  Seen state;
  const Subscription subscription(state);
  for (int i = 0; i < 40; ++i)
    fake_cupti_launch("kernel", 7); // 19 records fill a buffer
  fake_cupti_drain();
  CHECK_EQ(state.buffers, 2U);
  CHECK(state.is_on_other_thread);
  CHECK_EQ(fake_cupti_buffers_outstanding(), 1U);
  subscription.flush();
  CHECK_EQ(state.records, 40U);
  CHECK_EQ(fake_cupti_buffers_outstanding(), 0U);
}

TEST(no_launch_is_lost_among_threads) {
  Seen state;
  state.buffer_bytes = 1 << 16;
  const Subscription subscription(state);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] { fake_cupti_bench(5000); });
  for (std::thread &thread : threads)
    thread.join();
  subscription.flush();
  CHECK_EQ(state.records, 20000U);
  CHECK_EQ(state.enters, 20000U);
  CHECK_EQ(state.exits, 20000U);
}

TEST(records_without_a_buffer_are_dropped_and_counted) {
  Seen state;
  const Subscription subscription(state);
  state.buffer_bytes = 0;
  fake_cupti_launch("kernel", 7);
  state.buffer_bytes = 4096;
  fake_cupti_drop(5);
  fake_cupti_launch("kernel", 7);
  subscription.flush();
  CHECK_EQ(state.records, 1U);
  CHECK_EQ(state.dropped, 6U);
}

TEST(records_of_a_busy_context_wait_for_its_synchronisation) {
  Seen state;
  const Subscription subscription(state);
  fake_cupti_hold(1);
  fake_cupti_launch("kernel", 7);
  subscription.flush();
  CHECK_EQ(state.records, 0U);
  fake_cupti_release(1);
  subscription.flush();
  CHECK_EQ(state.records, 1U);
}

TEST(the_period_completes_what_is_there) {
  Seen state;
  const Subscription subscription(state);
  fake_cupti_launch("kernel", 7);
  fake_cupti_period_elapsed();
  CHECK_EQ(state.records, 1U);
  CHECK(state.is_on_other_thread);
}

TEST(there_is_one_subscriber) {
  Seen state;
  {
    const Subscription subscription(state);
    void *second = nullptr;
    CHECK_EQ(
        library().find<cupti::function::Subscribe>("cuptiSubscribe")(&second, on_call, nullptr),
        cupti::kErrorMultipleSubscribers);
  }
  fake_cupti_other_subscriber("CUPTI for Kineto");
  char name[64] = "";
  cupti::SubscriberParameters parameters;
  parameters.old_name = name;
  parameters.old_name_bytes = sizeof name;
  void *subscriber = nullptr;
  CHECK_EQ(library().find<cupti::function::SubscribeV2>("cuptiSubscribe_v2")(&subscriber, on_call,
                                                                             nullptr, &parameters),
           cupti::kErrorMultipleSubscribers);
  CHECK_EQ(std::string(name), "CUPTI for Kineto");
  fake_cupti_other_subscriber(nullptr);
}

TEST(any_entry_point_can_fail_always_or_once) {
  auto version = library().find<cupti::function::GetVersion>("cuptiGetVersion");
  uint32_t answer = 0;
  const uint64_t calls = fake_cupti_calls("cuptiGetVersion");
  fake_cupti_fail("cuptiSubscribe=39,cuptiGetVersion=15");
  CHECK_EQ(version(&answer), 15);
  const std::string once = "cuptiGetVersion@" + std::to_string(calls + 3) + "=7";
  fake_cupti_fail(once.c_str());
  CHECK_EQ(version(&answer), 0);
  CHECK_EQ(version(&answer), 7);
  CHECK_EQ(version(&answer), 0);
  fake_cupti_fail(nullptr);
  CHECK_EQ(answer, 26U);
  CHECK_EQ(fake_cupti_calls("cuptiGetVersion"), calls + 4);
}

TEST(a_clone_of_a_node_is_reported_with_the_id_of_the_executable_graph) {
  Seen state;
  const Subscription subscription(state);
  auto enable = library().find<cupti::function::EnableCallback>("cuptiEnableCallback");
  for (uint32_t cbid : {cupti::kGraphNodeCreated, cupti::kGraphNodeCloned})
    enable(1, subscription.handle(), cupti::kDomainResource, cbid);
  fake_cupti_capture_begin(7);
  fake_cupti_launch("kernel", 7);
  const uint32_t graph = fake_cupti_capture_end(7);
  const uint32_t executable = fake_cupti_graph_instantiate(graph);
  fake_cupti_graph_launch(executable, 7);
  subscription.flush();
  const std::vector<std::string> expected = {"13:" + std::to_string(graph),
                                             "13:" + std::to_string(executable),
                                             "20:" + std::to_string(executable)};
  CHECK(state.resources == expected);
  CHECK_EQ(state.records, 1U); // of the replay; a captured launch does not run
}
