// The parts of the module; each adds its names.
#pragma once

#include <pybind11/pybind11.h>

namespace proton {

void bind_scope(pybind11::module_ &module);
void bind_scope_observer(pybind11::module_ &module);
void bind_tasks(pybind11::module_ &module);
void bind_launch_hook(pybind11::module_ &module);
void bind_context(pybind11::module_ &module);
void bind_layers(pybind11::module_ &module);
void bind_torch(pybind11::module_ &module);
void bind_metrics(pybind11::module_ &module);
void bind_session(pybind11::module_ &module);
void bind_collectors(pybind11::module_ &module);
void bind_cupti(pybind11::module_ &module);
void bind_hip(pybind11::module_ &module);
void bind_instrumentation(pybind11::module_ &module);

} // namespace proton
