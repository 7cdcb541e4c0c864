// Replays a recorded stream: the same callbacks on as many threads, the same records.
#include <cstdio>

#include "driver/cupti/cupti_abi.h"
#include "library.h"
#include "stream_format.h"

using namespace fake;

namespace {

struct Event {
  stream::Call call;
  bool is_call = false;
  std::vector<uint32_t> sizes;
  std::vector<char> records;
  uint64_t dropped = 0;
};

class Replay {
public:
  explicit Replay(FakeMark on_mark) : on_mark_(on_mark) {}

  bool read(const char *path);
  void run();

private:
  bool read_chunk(const stream::ChunkHead &head, const char *payload);
  bool read_buffer(const char *payload, size_t bytes);
  void relocate(char *record) const;
  const char *text(int32_t number) const;
  void play(Event &event);
  void play_api(const stream::Call &call);
  void play_resource(const stream::Call &call);
  void play_nvtx(const stream::Call &call);
  void play_buffer(const Event &event);
  void work(uint16_t thread);

  FakeMark on_mark_;
  std::vector<const char *> texts_;
  std::vector<Event> events_;
  uint16_t threads_ = 1;
  // 8 bytes per open call, by domain and correlation.
  std::map<std::pair<uint8_t, uint32_t>, uint64_t> kept_;
  std::map<uint64_t, std::vector<char>> cubins_;

  std::mutex mutex_;
  std::condition_variable turn_;
  size_t next_ = 0;
};

bool Replay::read(const char *path) {
  std::FILE *file = std::fopen(path, "rb");
  if (file == nullptr)
    return false;
  std::vector<char> bytes;
  char part[65536];
  for (size_t count; (count = std::fread(part, 1, sizeof part, file)) > 0;)
    bytes.insert(bytes.end(), part, part + count);
  std::fclose(file);
  if (bytes.size() < sizeof stream::kMagic ||
      std::memcmp(bytes.data(), stream::kMagic, sizeof stream::kMagic) != 0)
    return false;
  size_t at = sizeof stream::kMagic;
  while (at + sizeof(stream::ChunkHead) <= bytes.size()) {
    const auto head = cupti::read<stream::ChunkHead>(bytes.data(), at);
    at += sizeof head;
    if (head.bytes > bytes.size() - at || !read_chunk(head, bytes.data() + at))
      return false;
    at += head.bytes;
  }
  return at == bytes.size();
}

bool Replay::read_chunk(const stream::ChunkHead &head, const char *payload) {
  if (head.tag == stream::kText) {
    texts_.push_back(intern(std::string(payload, head.bytes).c_str()));
  } else if (head.tag == stream::kCall) {
    if (head.bytes != sizeof(stream::Call))
      return false;
    Event event;
    event.call = cupti::read<stream::Call>(payload, 0);
    event.is_call = true;
    if (event.call.thread >= threads_)
      threads_ = static_cast<uint16_t>(event.call.thread + 1);
    events_.push_back(std::move(event));
  } else if (head.tag == stream::kBuffer) {
    return read_buffer(payload, head.bytes);
  }
  return true;
}

bool Replay::read_buffer(const char *payload, size_t bytes) {
  if (bytes < sizeof(stream::Buffer))
    return false;
  const auto head = cupti::read<stream::Buffer>(payload, 0);
  const size_t sizes = size_t{4} * head.record_count;
  if (sizeof head + sizes + head.bytes != bytes)
    return false;
  Event event;
  event.dropped = head.dropped;
  size_t sum = 0;
  for (uint32_t i = 0; i < head.record_count; ++i) {
    event.sizes.push_back(cupti::read<uint32_t>(payload, sizeof head + size_t{4} * i));
    sum += event.sizes.back();
  }
  const char *records = payload + sizeof head + sizes;
  event.records.assign(records, records + head.bytes);
  if (sum != head.bytes)
    return false;
  size_t at = 0;
  for (uint32_t size : event.sizes) {
    if (size < 8)
      return false;
    relocate(event.records.data() + at);
    at += size;
  }
  events_.push_back(std::move(event));
  return true;
}

void Replay::relocate(char *record) const {
  const int kind = cupti::read<int>(record, cupti::record_offset::kKind);
  size_t offset = 0;
  if (kind == cupti::kKindKernel || kind == cupti::kKindConcurrentKernel)
    offset = cupti::kernel_offset::kName;
  else if (kind == cupti::kKindDevice)
    offset = cupti::device_offset::kName;
  if (offset == 0)
    return;
  const auto number = cupti::read<uint64_t>(record, offset);
  const char *name = number == 0 ? nullptr : text(static_cast<int32_t>(number - 1));
  std::memcpy(record + offset, &name, sizeof name);
}

const char *Replay::text(int32_t number) const {
  return number < 0 || static_cast<size_t>(number) >= texts_.size()
             ? nullptr
             : texts_[static_cast<size_t>(number)];
}

void Replay::play(Event &event) {
  if (!event.is_call) {
    play_buffer(event);
    return;
  }
  const stream::Call &call = event.call;
  if (call.domain == stream::kMarkDomain) {
    if (on_mark_ != nullptr)
      on_mark_(text(call.text));
  } else if (call.domain == cupti::kDomainResource) {
    play_resource(call);
  } else if (call.domain == cupti::kDomainNvtx) {
    play_nvtx(call);
  } else if (call.domain < kDomains) {
    play_api(call);
  }
}

/// Parameters of any driver call; it may write `graph` and `exec`.
union Parameters {
  cuda::LaunchKernelParams plain;
  cuda::LaunchKernelExParams extended;
  cuda::GraphLaunchParams graph_launch;
  cuda::StreamBeginCaptureToGraphParams begin;
  cuda::StreamEndCaptureParams end;
  cuda::GraphInstantiateParams instantiate;
  cuda::GraphExecUpdateParams update;
  cuda::GraphAddChildNodeParams child;
  cuda::GraphCloneParams clone;
};

struct Handles {
  void *stream;
  void *graph;
  void *exec;
};

void *handle_or_null(HandleKind kind, uint64_t id) { return id == 0 ? nullptr : handle(kind, id); }

void fill_launch(Parameters &parameters, cuda::LaunchConfig &config, const stream::Call &call) {
  std::memcpy(config.grid, call.grid, sizeof config.grid);
  std::memcpy(config.block, call.block, sizeof config.block);
  config.shared_bytes = call.shared_bytes;
  config.stream = handle_or_null(kStreamHandle, call.stream);
  if (call.cbid == cupti::kCuLaunchKernelEx || call.cbid == cupti::kCuLaunchKernelExPtsz) {
    parameters.extended.config = &config;
    return;
  }
  std::memcpy(parameters.plain.grid, call.grid, sizeof call.grid);
  std::memcpy(parameters.plain.block, call.block, sizeof call.block);
  parameters.plain.shared_bytes = call.shared_bytes;
  parameters.plain.stream = config.stream;
}

void fill_graph(Parameters &parameters, Handles &handles, const stream::Call &call) {
  switch (call.cbid) {
  case cupti::kCuGraphLaunch:
  case cupti::kCuGraphLaunchPtsz:
    parameters.graph_launch = {handles.exec, handles.stream};
    break;
  case cupti::kCuStreamBeginCapture:
  case cupti::kCuStreamBeginCapturePtsz:
  case cupti::kCuStreamBeginCaptureV2:
  case cupti::kCuStreamBeginCaptureV2Ptsz:
  case cupti::kCuStreamBeginCaptureToGraph:
  case cupti::kCuStreamBeginCaptureToGraphPtsz:
    parameters.begin = {handles.stream, handles.graph};
    break;
  case cupti::kCuStreamEndCapture:
  case cupti::kCuStreamEndCapturePtsz:
    parameters.end = {handles.stream, &handles.graph};
    break;
  case cupti::kCuGraphInstantiateV2:
  case cupti::kCuGraphInstantiateWithFlags:
  case cupti::kCuGraphInstantiateWithParams:
  case cupti::kCuGraphInstantiateWithParamsPtsz:
    parameters.instantiate = {&handles.exec, handles.graph};
    break;
  case cupti::kCuGraphExecUpdate:
  case cupti::kCuGraphExecUpdateV2:
    parameters.update = {handles.exec, handles.graph};
    break;
  case cupti::kCuGraphAddChildGraphNode:
    parameters.child.graph = handles.graph;
    parameters.child.child = handle_or_null(kGraphHandle, call.original_graph);
    break;
  case cupti::kCuGraphClone:
    parameters.clone.original = handle_or_null(kGraphHandle, call.original_graph);
    parameters.clone.clone = &handles.graph;
    break;
  default:
    break;
  }
}

bool is_launch(uint32_t cbid) {
  return cbid == cupti::kCuLaunchKernel || cbid == cupti::kCuLaunchKernelPtsz ||
         cbid == cupti::kCuLaunchKernelEx || cbid == cupti::kCuLaunchKernelExPtsz ||
         cbid == cupti::kCuLaunchCooperativeKernel || cbid == cupti::kCuLaunchCooperativeKernelPtsz;
}

void Replay::play_api(const stream::Call &call) {
  Parameters parameters;
  std::memset(&parameters, 0, sizeof parameters);
  cuda::LaunchConfig config{};
  Handles handles{handle_or_null(kStreamHandle, call.stream),
                  handle_or_null(kGraphHandle, call.graph),
                  handle_or_null(kExecHandle, call.graph_exec)};
  if (call.domain == cupti::kDomainDriver && is_launch(call.cbid))
    fill_launch(parameters, config, call);
  else if (call.domain == cupti::kDomainDriver)
    fill_graph(parameters, handles, call);
  int result = call.result;
  cupti::CallbackData data{};
  data.site = static_cast<cupti::Site>(call.site);
  data.function_name = text(call.function);
  data.function_params = &parameters;
  data.function_return = &result;
  data.symbol_name = text(call.symbol);
  data.context = handle_or_null(kContextHandle, call.context_uid);
  data.context_uid = call.context_uid;
  data.correlation_data = &kept_[{call.domain, call.correlation}];
  data.correlation_id = call.correlation;
  call_back(call.domain, call.cbid, &data);
  if (call.site == cupti::kExit)
    kept_.erase({call.domain, call.correlation});
}

void Replay::play_resource(const stream::Call &call) {
  cupti::GraphData graph{};
  graph.graph = handle_or_null(kGraphHandle, call.graph);
  graph.original_graph = handle_or_null(kGraphHandle, call.original_graph);
  graph.node = call.node == 0 ? nullptr : node_handle(call.node);
  graph.original_node = call.original_node == 0 ? nullptr : node_handle(call.original_node);
  graph.node_type = call.node_type;
  graph.graph_exec = handle_or_null(kExecHandle, call.graph_exec);
  cupti::ModuleResourceData module{call.module, call.cubin_size, nullptr};
  const bool is_module = call.cbid >= cupti::kModuleLoaded && call.cbid <= cupti::kModuleProfiled;
  if (is_module && call.cubin_size != 0) {
    auto [found, is_new] = cubins_.try_emplace(call.cubin_crc ^ call.cubin_size);
    if (is_new)
      found->second = cubin(call.cubin_crc, call.cubin_size);
    module.cubin = found->second.data();
  }
  cupti::ResourceData data{handle_or_null(kContextHandle, call.context_uid),
                           handle_or_null(kStreamHandle, call.stream), nullptr};
  if (is_module)
    data.descriptor = &module;
  else if (call.cbid >= cupti::kGraphCreated && call.cbid <= cupti::kGraphNodeCloned)
    data.descriptor = &graph;
  call_back(cupti::kDomainResource, call.cbid, &data);
}

void Replay::play_nvtx(const stream::Call &call) {
  cupti::NvtxRangePushAParams push{text(call.text)};
  const cupti::NvtxData data{text(call.function), &push, nullptr};
  if (call.cbid == cupti::kNvtxRangePushA || call.cbid == cupti::kNvtxRangePop)
    call_back(cupti::kDomainNvtx, call.cbid, &data);
}

void Replay::play_buffer(const Event &event) {
  library().delivery.drop(event.dropped);
  size_t at = 0;
  for (uint32_t size : event.sizes) {
    const char *record = event.records.data() + at;
    at += size;
    const int kind = cupti::read<int>(record, cupti::record_offset::kKind);
    if (kind <= 0 || kind >= kKinds || !library().kinds[static_cast<size_t>(kind)])
      continue;
    library().record_bytes[static_cast<size_t>(kind)] = size;
    library().delivery.append(record, size);
  }
  library().delivery.complete_on_worker();
}

void Replay::work(uint16_t thread) {
  std::unique_lock lock(mutex_);
  for (;;) {
    // Buffers belong to the first thread's turn; they are delivered by the worker thread.
    turn_.wait(lock, [&] {
      return next_ >= events_.size() ||
             (events_[next_].is_call ? events_[next_].call.thread : 0) == thread;
    });
    if (next_ >= events_.size())
      return;
    play(events_[next_]);
    ++next_;
    turn_.notify_all();
  }
}

void Replay::run() {
  std::vector<std::thread> threads;
  for (uint16_t thread = 1; thread < threads_; ++thread)
    threads.emplace_back([this, thread] { work(thread); });
  work(0);
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace

FAKE_EXPORT int fake_cupti_replay(const char *path, FakeMark on_mark) {
  Replay replay(on_mark);
  if (!replay.read(path))
    return -1;
  replay.run();
  return 0;
}
