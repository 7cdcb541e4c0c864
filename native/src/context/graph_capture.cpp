#include "context/graph_capture.h"

namespace proton {
namespace {

[[gnu::tls_model("initial-exec")]] thread_local OpenCapture *t_capture = nullptr;

} // namespace

OpenCapture *open_capture() noexcept { return t_capture; }
void set_open_capture(OpenCapture *capture) noexcept { t_capture = capture; }

} // namespace proton
