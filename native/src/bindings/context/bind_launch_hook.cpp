// The launch hook as a C type: Triton calls it twice per launch, and Python code would cost more
// than all the rest of recording a launch.
#include "bindings/module/bindings.h"

#include <array>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "bindings/values/plain_metrics.h"
#include "bindings/values/python_values.h"
#include "bindings/values/tensor_arguments.h"
#include "context/thread/host_range.h"
#include "context/thread/thread_state.h"

namespace py = pybind11;

namespace proton {
namespace {

/// One thread's launches; a launch and its exit are on one thread and do not nest.
struct HookThread {
  uint64_t scope_id = 0; ///< of the open launch's frame; 0 if none is open
  uint32_t depth = 0;    ///< of the stack before that frame
  bool is_evaluating = false;
  const PyObject *metadata = nullptr; ///< of the launch that is about to come; borrowed
  int32_t variant = -1;               ///< of that launch, by its arguments
  uint64_t newest_id = 0;          ///< of the newest launch, which may be over; 0 if there is none
  PyObject *newest_name = nullptr; ///< its kernel; owned, one reference for the life of the thread
};

[[gnu::tls_model("initial-exec")]] constinit thread_local HookThread t_hook;

struct KnownName {
  PyObject *name = nullptr; ///< owned, so that no other takes its address
  bool is_wanted = true;
};

struct HookState {
  bool is_filtered = false; ///< whether `wants` decides; kernels may have new names for ever
  std::array<KnownName, 256> names; ///< by address: Triton passes the same object at each launch
  PlainMetrics metrics{PlainMetrics::Source::kLaunch};

  void forget_names() {
    for (KnownName &known : names)
      Py_CLEAR(known.name);
  }
};

struct HookObject {
  PyObject_HEAD;
  HookState *state;
};

HookState &state_of(PyObject *object) { return *reinterpret_cast<HookObject *>(object)->state; }

/// HookNames of attributes, made once.
struct HookNames {
  PyObject *data = PyUnicode_InternFromString("data");
  PyObject *extras = PyUnicode_InternFromString("extras");
  PyObject *get = PyUnicode_InternFromString("get");
  PyObject *name = PyUnicode_InternFromString("name");
  PyObject *wants = PyUnicode_InternFromString("wants");
  PyObject *stage = PyUnicode_InternFromString("stage");
  PyObject *add_staged = PyUnicode_InternFromString("add_staged");
  PyObject *report = PyUnicode_InternFromString("report");
  PyObject *read = PyUnicode_InternFromString("read");
  PyObject *known = PyUnicode_InternFromString("known");
  PyObject *upstream_shape = PyUnicode_InternFromString("upstream_shape");
  PyObject *code_flops = PyUnicode_InternFromString("code_flops");
  PyObject *derived_flops = PyUnicode_InternFromString("derived_flops");
  std::array<PyObject *, 5> flops = {
      PyUnicode_InternFromString("flops"), PyUnicode_InternFromString("flops8"),
      PyUnicode_InternFromString("flops16"), PyUnicode_InternFromString("flops32"),
      PyUnicode_InternFromString("flops64")};
};

const HookNames &hook_names() {
  static const HookNames *all = new HookNames; // one reference each for the life of the process
  return *all;
}

py::object owned(PyObject *object) {
  if (!object)
    throw py::error_already_set();
  return py::reinterpret_steal<py::object>(object);
}

/// Closes the frame of the open launch, and whatever was left open inside it. The frame may be
/// closed already, if a scope around the launch was left meanwhile.
void close_launch(HookThread &thread) {
  if (thread.scope_id == 0)
    return;
  ShadowStack &stack = this_thread().stack;
  if (stack.depth() > thread.depth && stack.entry(thread.depth).scope_id() == thread.scope_id)
    stack.pop_to(thread.depth, session_state());
  thread.scope_id = 0;
}

void open_launch(HookThread &thread, PyObject *name, const SessionState &now) {
  PythonText text(name, "the name of a kernel");
  ShadowStack &stack = this_thread().stack;
  uint32_t depth = stack.depth();
  HashedName shown = text.name();
  shown.variant = thread.variant;
  thread.scope_id = stack.push(shown, FrameKind::kKernel, now).scope_id();
  thread.depth = depth;
  thread.newest_id = thread.scope_id;
  Py_XSETREF(thread.newest_name, Py_NewRef(name));
}

bool is_wanted(PyObject *hook, PyObject *name) {
  HookState &state = state_of(hook);
  if (!state.is_filtered)
    return true;
  auto address = reinterpret_cast<uintptr_t>(name) * 0x9E3779B97F4A7C15ull;
  KnownName &known = state.names[(address >> 40) % state.names.size()];
  if (known.name == name)
    return known.is_wanted;
  py::object answer = owned(PyObject_CallMethodOneArg(hook, hook_names().wants, name));
  PyObject *older = known.name;
  known = {Py_NewRef(name), answer.ptr() == Py_True};
  Py_XDECREF(older);
  return answer.ptr() == Py_True;
}

/// Hands the pending exception to Python's side and clears it. An exception for the whole program,
/// such as KeyboardInterrupt, goes on.
void report_pending(PyObject *hook, PyObject *kernel) {
  py::error_already_set error; // takes the pending exception
  if (!error.matches(PyExc_Exception))
    throw error;
  owned(
      PyObject_CallMethodObjArgs(hook, hook_names().report, kernel, error.value().ptr(), nullptr));
}

/// The state for kernels that compute a kernel's metadata, which the hook ignores.
class Evaluation {
public:
  Evaluation(HookThread &thread, std::string_view kernel) : thread_(thread) {
    this_thread().stack.enter_state("__proton_launch_metadata:" + std::string(kernel),
                                    session_state());
    thread_.is_evaluating = true;
  }
  ~Evaluation() {
    thread_.is_evaluating = false;
    try {
      this_thread().stack.exit_state(session_state());
    } catch (...) { // the metadata function left more states than it entered
    }
  }
  Evaluation(const Evaluation &) = delete;
  Evaluation &operator=(const Evaluation &) = delete;

private:
  HookThread &thread_;
};

/// The result of evaluating a launch's metadata.
struct Evaluated {
  py::object values; ///< a dict; null if the evaluation failed
  std::vector<UserMetric> numbers;
  py::object staged; ///< what Python made of the values that are not plain numbers, if any
};

/// Makes the flops that the code says those of the launch, or `derived_flops` where its own
/// metadata has some.
void settle_flops(PyObject *values) {
  const HookNames &names = hook_names();
  PyObject *found = PyDict_GetItemWithError(values, names.code_flops);
  if (!found)
    return PyErr_Clear();
  auto derived = py::reinterpret_borrow<py::dict>(found);
  bool is_given = false;
  for (PyObject *name : names.flops)
    is_given = is_given || PyDict_Contains(values, name) == 1;
  int failed = PyDict_DelItem(values, names.code_flops);
  if (is_given) {
    py::object total = py::int_(0);
    for (auto each : derived)
      total = total + py::reinterpret_borrow<py::object>(each.second);
    failed |= PyDict_SetItem(values, names.derived_flops, total.ptr());
  } else {
    failed |= PyDict_Update(values, derived.ptr());
  }
  if (failed != 0)
    throw py::error_already_set();
}

Evaluated evaluate(PyObject *hook, PyObject *metadata, PyObject *kernel) {
  PythonText text(kernel, "the name of a kernel");
  Evaluation evaluation(t_hook, text.text());
  Evaluated result;
  auto values =
      py::reinterpret_steal<py::object>(PyObject_CallMethodNoArgs(metadata, hook_names().get));
  if (values && !PyDict_Check(values.ptr()))
    values = py::reinterpret_steal<py::object>(
        PyObject_CallOneArg(reinterpret_cast<PyObject *>(&PyDict_Type), values.ptr()));
  py::object rest;
  if (values)
    settle_flops(values.ptr());
  if (!values || !state_of(hook).metrics.split(values.ptr(), result.numbers, rest)) {
    report_pending(hook, kernel);
    return result;
  }
  result.values = std::move(values);
  if (rest) {
    PyObject *staged =
        PyObject_CallMethodObjArgs(hook, hook_names().stage, kernel, rest.ptr(), nullptr);
    if (!staged)
      report_pending(hook, kernel);
    else if (staged == Py_None)
      Py_DECREF(staged);
    else
      result.staged = py::reinterpret_steal<py::object>(staged);
  }
  return result;
}

void add_numbers(PyObject *hook, PyObject *kernel, const std::vector<UserMetric> &numbers) {
  if (numbers.empty())
    return;
  try {
    add_metrics_at(capture_current(), numbers);
  } catch (const Error &error) { // e.g. another type than at the last launch
    owned(PyObject_CallMethodObjArgs(hook, hook_names().report, kernel, py::str(error.what()).ptr(),
                                     nullptr));
  }
}

py::object as_text(PyObject *name) {
  return PyUnicode_Check(name) ? py::reinterpret_borrow<py::object>(name)
                               : owned(PyObject_Str(name));
}

py::object name_in(PyObject *data) {
  if (!PyDict_CheckExact(data))
    return owned(PyObject_GetItem(data, hook_names().name));
  PyObject *name = PyDict_GetItemWithError(data, hook_names().name);
  if (!name && !PyErr_Occurred())
    PyErr_SetObject(PyExc_KeyError, hook_names().name);
  return owned(Py_XNewRef(name));
}

/// Opens the frame of the launch and adds its metrics.
void enter_evaluated(PyObject *hook, PyObject *metadata, PyObject *kernel) {
  Evaluated found = evaluate(hook, metadata, kernel);
  PyObject *given =
      found.values ? PyDict_GetItemWithError(found.values.ptr(), hook_names().name) : kernel;
  if (!given && PyErr_Occurred())
    throw py::error_already_set();
  py::object name = as_text(given ? given : kernel);
  if (name.ptr() != kernel && !is_wanted(hook, name.ptr()))
    return;
  open_launch(t_hook, name.ptr(), session_state());
  if (found.values)
    add_numbers(hook, kernel, found.numbers);
  if (found.staged)
    owned(PyObject_CallMethodObjArgs(hook, hook_names().add_staged, kernel, found.staged.ptr(),
                                     nullptr));
}

/// Adds numbers that need no evaluation: those beside Triton's own entries.
void add_known_numbers(PyObject *hook, PyObject *data, PyObject *kernel) {
  constexpr Py_ssize_t kEntriesOfTriton = 3; // name, function, stream
  if (!PyDict_CheckExact(data) || PyDict_GET_SIZE(data) <= kEntriesOfTriton)
    return;
  settle_flops(data);
  std::vector<UserMetric> numbers;
  py::object rest;
  if (state_of(hook).metrics.split(data, numbers, rest))
    add_numbers(hook, kernel, numbers);
  else
    report_pending(hook, kernel);
}

/// Whether the launch's metadata has something to evaluate. Only a LazyDict says so.
bool has_functions(PyObject *metadata) {
  auto extras = py::reinterpret_steal<py::object>(PyObject_GetAttr(metadata, hook_names().extras));
  if (extras && PyList_CheckExact(extras.ptr()))
    return PyList_GET_SIZE(extras.ptr()) != 0;
  PyErr_Clear();
  return true;
}

void enter_launch(PyObject *hook, PyObject *metadata, const SessionState &now) {
  py::object data = owned(PyObject_GetAttr(metadata, hook_names().data));
  py::object kernel = as_text(name_in(data.ptr()).ptr());
  if (!is_wanted(hook, kernel.ptr()))
    return;
  if (has_functions(metadata)) {
    enter_evaluated(hook, metadata, kernel.ptr());
    return;
  }
  open_launch(t_hook, kernel.ptr(), now);
  add_known_numbers(hook, data.ptr(), kernel.ptr());
}

PyObject *hook_enter(PyObject *object, PyObject *metadata) {
  HookThread &thread = t_hook;
  if (thread.is_evaluating)
    Py_RETURN_NONE;
  return guarded<PyObject *>(nullptr, [&]() -> PyObject * {
    close_launch(thread); // of a launch that raised: Triton does not call its exit hook
    SessionState now = session_state();
    if (std::exchange(thread.metadata, nullptr) != metadata)
      thread.variant = -1;
    if (now.active)
      enter_launch(object, metadata, now);
    Py_RETURN_NONE;
  });
}

PyObject *hook_exit(PyObject *, PyObject *) {
  HookThread &thread = t_hook;
  if (!thread.is_evaluating)
    close_launch(thread);
  Py_RETURN_NONE;
}

PyObject *hook_set_filtered(PyObject *object, PyObject *is_filtered) {
  HookState &state = state_of(object);
  state.is_filtered = is_filtered == Py_True;
  state.forget_names();
  Py_RETURN_NONE;
}

/// newest_launch(): number and kernel of the calling thread's newest launch, whether it is open,
/// and whether its metadata is being evaluated.
PyObject *newest_launch(PyObject *, PyObject *) {
  return guarded<PyObject *>(nullptr, [] {
    const HookThread &thread = t_hook;
    py::object id = py::none(), name = py::none();
    if (thread.newest_id != 0) {
      id = py::int_(thread.newest_id);
      name = py::reinterpret_borrow<py::object>(thread.newest_name);
    }
    bool is_open = thread.scope_id != 0 || thread.is_evaluating;
    return py::make_tuple(id, name, is_open, thread.is_evaluating).release().ptr();
  });
}

PyObject *hook_new(PyTypeObject *type, PyObject *, PyObject *) {
  PyObject *object = type->tp_alloc(type, 0); // zeroed
  if (!object)
    return nullptr;
  auto *state = new (std::nothrow) HookState;
  reinterpret_cast<HookObject *>(object)->state = state;
  if (state)
    return object;
  Py_DECREF(object);
  return PyErr_NoMemory();
}

void hook_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  auto *hook = reinterpret_cast<HookObject *>(object);
  if (hook->state)
    hook->state->forget_names();
  delete hook->state;
  type->tp_free(object);
  Py_DECREF(type);
}

/// One call of Triton's `launch_metadata`, a method of kernels: kernel, grid, stream, arguments.
struct MetadataCall {
  PyObject *const *given;
  Py_ssize_t count;

  static constexpr Py_ssize_t kBeforeArguments = 3;
  PyObject *kernel() const { return given[0]; }
  PyObject *grid() const { return given[1]; }
  /// By the tensors of the launch and the constants of the kernel, which `describe` says.
  int32_t variant(PyObject *describe) const noexcept {
    auto constants = [&]() -> std::string {
      auto text = py::reinterpret_steal<py::object>(PyObject_CallOneArg(describe, kernel()));
      if (text && PyUnicode_Check(text.ptr()))
        return std::string(PythonText(text.ptr(), "constants").text());
      PyErr_Clear();
      return "";
    };
    std::span<PyObject *const> launched(given + kBeforeArguments,
                                        static_cast<size_t>(count - kBeforeArguments));
    return variant_of_call(launched, reinterpret_cast<uintptr_t>(kernel()), constants);
  }
  py::object arguments() const {
    py::object all = owned(PyTuple_New(count - kBeforeArguments));
    for (Py_ssize_t at = kBeforeArguments; at != count; ++at)
      PyTuple_SET_ITEM(all.ptr(), at - kBeforeArguments, Py_NewRef(given[at]));
    return all;
  }
};

/// What the code says of a launch, a dict: None where it says nothing, null where that is not known
/// yet. `kernels` is a dict: weak reference to a kernel -> KernelWork, or None.
py::object known_work(PyObject *kernels, const MetadataCall &call) try {
  py::object key = owned(PyWeakref_NewRef(call.kernel(), nullptr));
  PyObject *kernel = PyDict_GetItemWithError(kernels, key.ptr());
  if (!kernel || kernel == Py_None)
    return py::reinterpret_borrow<py::object>(kernel);
  py::object read = owned(PyObject_GetAttr(kernel, hook_names().read));
  py::object known = owned(PyObject_GetAttr(kernel, hook_names().known));
  key = owned(PySequence_Tuple(call.grid()));
  if (!read.is_none())
    key = py::make_tuple(key, owned(PyObject_CallOneArg(read.ptr(), call.arguments().ptr())));
  return py::reinterpret_borrow<py::object>(PyDict_GetItem(known.ptr(), key.ptr()));
} catch (const py::error_already_set &) {
  return {}; // arguments that cannot be read: Python's side knows what to do
}

/// Calls Triton's `launch_metadata` and adds what the code says; `parts` are those of code_bytes().
PyObject *launch_metadata(PyObject *parts, PyObject *const *given, Py_ssize_t count,
                          PyObject *names) {
  PyObject *original = PyTuple_GET_ITEM(parts, 0), *kernels = PyTuple_GET_ITEM(parts, 1),
           *flags = PyTuple_GET_ITEM(parts, 2), *add_new = PyTuple_GET_ITEM(parts, 3),
           *describe = PyTuple_GET_ITEM(parts, 4);
  PyObject *found = PyObject_Vectorcall(original, given, static_cast<size_t>(count), names);
  if (!found || found == Py_None || names || count < MetadataCall::kBeforeArguments)
    return found;
  py::object metadata = py::reinterpret_steal<py::object>(found);
  return guarded<PyObject *>(nullptr, [&] {
    if (owned(PyObject_GetAttr(flags, hook_names().upstream_shape)).ptr() == Py_True)
      return metadata.release().ptr();
    MetadataCall call{given, count};
    t_hook.metadata = found;
    t_hook.variant = call.variant(describe);
    py::object work = known_work(kernels, call);
    if (!work)
      owned(PyObject_CallFunctionObjArgs(add_new, found, call.kernel(), call.grid(),
                                         call.arguments().ptr(), nullptr));
    else if (!work.is_none()) { // the kernel's own metadata is added later, and wins
      py::object data = owned(PyObject_GetAttr(found, hook_names().data));
      if (PyDict_Update(data.ptr(), work.ptr()) != 0)
        throw py::error_already_set();
    }
    return metadata.release().ptr();
  });
}

PyMethodDef kLaunchMetadata = {
    "launch_metadata", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(launch_metadata)),
    METH_FASTCALL | METH_KEYWORDS, "Triton's launch_metadata, which adds what the code says."};

/// code_bytes(original, kernels, flags, add_new, describe): a method that replaces Triton's
/// launch_metadata.
PyObject *code_bytes(PyObject *, PyObject *parts) {
  return guarded<PyObject *>(nullptr, [&] {
    if (PyTuple_GET_SIZE(parts) != 5)
      throw py::type_error("code_bytes: five arguments are needed");
    py::object function = owned(PyCFunction_New(&kLaunchMetadata, parts));
    return PyInstanceMethod_New(function.ptr());
  });
}

PyMethodDef kCodeBytes = {"code_bytes", code_bytes, METH_VARARGS,
                          "Replaces the method launch_metadata of Triton's kernels."};
PyMethodDef kNewestLaunch = {"newest_launch", newest_launch, METH_NOARGS,
                             "Facts of the calling thread's newest launch with the hook."};
PyMethodDef kHookMethods[] = {
    {"enter", hook_enter, METH_O,
     "enter($self, metadata, /)\n--\n\nOpens the frame of a launch and adds its metrics."},
    {"exit", hook_exit, METH_O, "exit($self, metadata, /)\n--\n\nCloses the frame of a launch."},
    {"set_filtered", hook_set_filtered, METH_O,
     "set_filtered($self, is_filtered, /)\n--\n\nAsks `wants` for every kernel, or takes all."},
    {nullptr, nullptr, 0, nullptr}};
char kHookDoc[] =
    "The part of the launch hook that runs at every launch.\n\n"
    "A subclass says what it wants of what is rare: wants(kernel), stage(kernel, values), "
    "add_staged(kernel, staged) and report(kernel, error).";
PyType_Slot kHookSlots[] = {{Py_tp_doc, kHookDoc},
                            {Py_tp_new, reinterpret_cast<void *>(hook_new)},
                            {Py_tp_dealloc, reinterpret_cast<void *>(hook_dealloc)},
                            {Py_tp_methods, kHookMethods},
                            {0, nullptr}};
PyType_Spec kHookSpec = {"proton_bench._native.launch_hook", sizeof(HookObject), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, kHookSlots};

} // namespace

void bind_launch_hook(py::module_ &module) {
  auto type = py::reinterpret_steal<py::object>(PyType_FromSpec(&kHookSpec));
  if (!type)
    throw py::error_already_set();
  module.attr("launch_hook") = type;
  module.attr("newest_launch") =
      py::reinterpret_steal<py::object>(PyCFunction_New(&kNewestLaunch, nullptr));
  module.attr("code_bytes") =
      py::reinterpret_steal<py::object>(PyCFunction_New(&kCodeBytes, nullptr));
}

} // namespace proton
