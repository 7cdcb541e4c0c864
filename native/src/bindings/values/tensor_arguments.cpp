#include "bindings/values/tensor_arguments.h"

#include <array>
#include <cstring>

#include "collector/cpu/op_inputs.h"
#include "collector/cpu/op_stack.h"

namespace proton {
namespace {

// Guarded by Python's lock.
PyTypeObject *g_tensor_type = nullptr; ///< null: tensors are not known
uint32_t g_tensor_offset = 0;

/// The tensors of a call, as many as there is room for.
class Tensors {
public:
  void add(PyObject *object) noexcept {
    if (PyObject_TypeCheck(object, g_tensor_type)) {
      add_tensor(object);
    } else if (PyTuple_CheckExact(object)) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
        if (PyObject *each = PyTuple_GET_ITEM(object, i); PyObject_TypeCheck(each, g_tensor_type))
          add_tensor(each);
    } else if (PyList_CheckExact(object)) {
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(object); ++i)
        if (PyObject *each = PyList_GET_ITEM(object, i); PyObject_TypeCheck(each, g_tensor_type))
          add_tensor(each);
    }
  }
  std::span<const void *const> found() const noexcept { return {tensors_.data(), count_}; }

private:
  void add_tensor(PyObject *object) noexcept {
    const void *tensor = nullptr;
    std::memcpy(&tensor, reinterpret_cast<const unsigned char *>(object) + g_tensor_offset,
                sizeof(tensor));
    if (tensor && count_ < tensors_.size())
      tensors_[count_++] = tensor;
  }
  std::array<const void *, 32> tensors_;
  size_t count_ = 0;
};

} // namespace

void set_tensor_type(const pybind11::object &type, uint32_t offset) {
  if (!PyType_Check(type.ptr()))
    throw pybind11::type_error("a type of tensors is needed");
  Py_XSETREF(g_tensor_type, reinterpret_cast<PyTypeObject *>(Py_NewRef(type.ptr())));
  g_tensor_offset = offset;
}

int32_t variant_of_call(std::span<PyObject *const> arguments, uint64_t of,
                        const std::function<std::string()> &more) noexcept {
  if (!g_tensor_type || !are_inputs_read())
    return -1;
  Tensors tensors;
  for (PyObject *each : arguments)
    tensors.add(each);
  return tensors_variant(tensors.found(), of, more);
}

} // namespace proton
