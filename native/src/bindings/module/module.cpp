// The module _native.
#include "bindings/module/bindings.h"

#include "aggregate/consumer/drain_thread.h"
#include "bindings/values/python_values.h"
#include "context/thread/host_range.h"
#include "context/thread/python_stack.h"
#include "proton_bench/record_sink.h"
#include "session/session_registry.h"

#ifdef Py_GIL_DISABLED
#error                                                                                             \
    "the recorder relies on Python's lock, which free-threaded builds lack: install the pure wheel"
#endif

PYBIND11_MODULE(_native, module) {
  module.doc() = "Native core of proton_bench.";
  module.attr("version") = PROTON_BENCH_VERSION;
  module.attr("abi_version") = PB_RECORD_SINK_ABI_VERSION;
  module.attr("KIND_SCOPE") = static_cast<int>(proton::FrameKind::kScope);
  module.attr("KIND_OP") = static_cast<int>(proton::FrameKind::kOp);
  module.attr("KIND_KERNEL") = static_cast<int>(proton::FrameKind::kKernel);
  module.attr("KIND_TEST") = static_cast<int>(proton::FrameKind::kTest);
  module.attr("KIND_LAYER") = static_cast<int>(proton::FrameKind::kLayer);
  proton::register_error_translator();
  proton::set_python_source(proton::capture_python);
  proton::set_python_lock(&proton::kInterpreterLock);
  proton::set_drain_request(proton::request_background_drain);
  proton::bind_scope(module);
  proton::bind_scope_observer(module);
  proton::bind_tasks(module);
  proton::bind_launch_hook(module);
  proton::bind_context(module);
  proton::bind_layers(module);
  proton::bind_torch(module);
  proton::bind_metrics(module);
  proton::bind_session(module);
  proton::bind_collectors(module);
  proton::bind_cupti(module);
  proton::bind_hip(module);
  proton::bind_instrumentation(module);
  proton::install_fork_handlers();
}
