// A recorded stream: replayed into a session that is written in every format, or refused.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "calltree/context_tree.h"
#include "collector/replay/replay_collector.h"
#include "context/thread/thread_state.h"
#include "session/session_registry.h"
#include "support/error.h"

using namespace proton;

namespace {

void replay(const std::string &path, bool manual) {
  SessionRegistry &sessions = SessionRegistry::instance();
  ReplayCollector collector(Aggregator::instance(), path, manual);
  std::shared_ptr<Session> session = sessions.add(ContextSource::kShadow, false);
  session->activate();
  try {
    collector.start();
    if (manual)
      collector.launch(1000);
    collector.stop();
    if (session->encode(0, FileFormat::kProton).empty())
      std::abort();
  } catch (const Error &) {
    session->remove();
    throw;
  }
  session->remove();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const int file = memfd_create("recording", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != static_cast<ssize_t>(size))
    std::abort();
  for (bool manual : {false, true}) {
    try {
      replay(path, manual);
    } catch (const Error &error) {
      if (error.code() != ErrorCode::kFormat)
        std::abort();
    }
  }
  if (this_thread().stack.depth() != 0 || ContextTree::instance().live_count() != 0)
    std::abort();
  return 0;
}
