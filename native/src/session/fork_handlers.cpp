#include "session/fork_handlers.h"

#include <pthread.h>

#include "calltree/context_tree.h"
#include "context/layer/layer_range.h"
#include "context/thread/shadow_stack.h"
#include "context/thread/thread_state.h"
#include "record/device.h"
#include "record/variant_table.h"
#include "session/partial_writer.h"
#include "session/session_registry.h"
#include "support/fork_locks.h"
#include "writer/file/partial_file.h"

namespace proton {
namespace {

void start_child() noexcept {
  unlock_in_child();
  SessionRegistry::instance().reset_after_fork();
  if (was_forked_in_a_change())
    return;
  PartialWriter::instance().reset_after_fork();
  WriterThread::instance().reset_after_fork();
  HeldFiles::instance().reset_after_fork();
}

// Every lock must exist before the first fork: one that is made while another thread forks would
// be missed.
void make_locks() {
  PartialWriter::instance();
  Aggregator::instance();
  WriterThread::instance();
  HeldFiles::instance();
  ContextTree::instance();
  DeviceTable::instance();
  find_variant(-1);
  this_thread();
  forget_expired(0);
  layer_below(nullptr, "");
  Name("ROOT");
}

} // namespace

void install_fork_handlers() {
  static const bool installed = [] {
    make_locks();
    return pthread_atfork(lock_for_fork, unlock_in_parent, start_child) == 0;
  }();
  static_cast<void>(installed);
}

} // namespace proton
