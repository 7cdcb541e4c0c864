#include "session/session.h"

#include <algorithm>
#include <utility>

#include "calltree/context_tree.h"
#include "context/thread/steps.h"
#include "context/thread/thread_state.h"
#include "session/session_registry.h"
#include "support/clock.h"
#include "support/error.h"

namespace proton {
namespace {

using Held = Aggregator::Held;

constexpr int64_t kHandOverPatience_ns = 100'000'000;

constexpr const char *kNotJoined = "counters of a phase that were not joined"; // readers know it

/// Whether the frame is of another session's source.
bool is_hidden(ContextSource source, FrameKind kind) {
  return (kind == FrameKind::kLayer && !has(source, ContextSource::kLayers)) ||
         (kind == FrameKind::kContextOp && !has(source, ContextSource::kOps));
}

SessionRegistry &registry() { return SessionRegistry::instance(); }

} // namespace

Session::Session(int id, ContextSource source, uint32_t generation, bool records_wall,
                 bool keeps_timeline, bool upstream_shape)
    : id_(id), source_(source),
      tree_(std::make_unique<SessionTree>(source, generation, records_wall, keeps_timeline,
                                          upstream_shape)),
      starting_thread_(this_thread().stack) {}

Held Session::held_live() const {
  Held held;
  if (!tree_)
    throw registry().unknown(id_, held);
  return held;
}

bool Session::is_live() {
  Held held;
  return tree_ != nullptr;
}

bool Session::is_active() {
  Held held = held_live();
  return is_active_;
}

void Session::join(EpochPlan &plan, const Held &) const {
  if (!is_active_)
    return;
  SessionState &next = plan.session_state;
  next.active = true;
  next.generation = std::max(next.generation, tree_->generation());
  next.wants_python |= has(source_, ContextSource::kPython);
  next.wants_layers |= has(source_, ContextSource::kLayers);
  next.wants_ops |= has(source_, ContextSource::kOps);
  next.wants_times |= tree_->wants_times();
  next.wants_lines |= !tree_->times_scopes();
  next.wants_timeline |= tree_->events() != nullptr;
  next.wants_steps |= follows_steps_;
  if (starting_thread_.get())
    plan.starting = starting_thread_;
  plan.members.push_back(member());
  if (steady_)
    plan.members.push_back({steady_.get(), window_});
}

void Session::activate() {
  bool restarts = false;
  {
    Held held = held_live();
    restarts = follows_steps_ && !is_active_ && !registry().are_steps_recorded(held);
  }
  if (restarts)
    restart_steps();
  Held held = held_live();
  if (is_active_)
    return;
  is_active_ = true;
  drop_steady(held); // a window with a pause in it is none
  tree_->resume(monotonic_ns());
  registry().open_epoch(held);
  live_phases_.insert(phase_);
}

void Session::deactivate() {
  Held held = held_live();
  stop(held);
}

void Session::stop(Held &held) {
  if (!is_active_)
    return;
  is_active_ = false;
  tree_->pause(monotonic_ns());
  if (steady_)
    steady_->pause(monotonic_ns());
  registry().open_epoch(held);
}

void Session::remove() {
  std::shared_ptr<PhaseCloser> closer;
  std::shared_ptr<TraceStream> stream;
  std::shared_ptr<Session> self; // the registry's, which may be the last
  {
    Held held = held_live();
    closer = std::move(closer_);
    stream = std::move(stream_);
    if (std::exchange(is_active_, false))
      registry().open_epoch(held);
    held.drain();
    drop_steady(held);
    held.epochs().drop(*tree_);
    tree_.reset();
    self = registry().forget(id_, held);
    held.trim();
  }
  // Their thread may wait for the lock.
  if (closer)
    closer->close();
  if (stream)
    stream->close();
}

void Session::reset_after_fork() noexcept {
  is_active_ = false;
  if (stream_)
    stream_->abandon();
}

uint32_t Session::context_depth() {
  Held held = held_live();
  uint32_t generation = tree_->generation();
  ContextTree &tree = ContextTree::instance();
  uint32_t depth = 0;
  for (ContextId id = this_thread().stack.own(); id != 0; id = tree.node(id).parent) {
    const FrameKind kind = tree.node(id).kind;
    const bool is_counted = kind != FrameKind::kState && !is_hidden(source_, kind);
    depth += is_counted && tree.node(id).generation >= generation;
  }
  return depth;
}

void Session::set_provenance(std::string encoded) {
  Held held = held_live();
  provenance_ = std::move(encoded);
}

std::map<std::string, uint64_t> Session::losses() {
  Held held = held_live();
  return tree_->losses();
}

RecordCounts Session::counts() {
  Held held = held_live();
  RecordCounts total = retired_;
  total.add(held.epochs().counts_of(*tree_));
  return total;
}

std::vector<JoinedBurst> Session::take_bursts(uint32_t phase) {
  Held held = held_live();
  held.drain();
  release_joined();
  CounterLog *counters = tree_->counters();
  if (!counters)
    return {};
  if (joins_phases_)
    joining_ = phase;
  return counters->take(phase, phase_ > 0);
}

std::vector<std::string> Session::counter_metrics() {
  Held held = held_live();
  const CounterLog *counters = tree_->counters();
  return counters ? counters->metrics() : std::vector<std::string>();
}

void Session::keep_runs() {
  Held held = held_live();
  tree_->keep_runs();
}

std::vector<DeviceRun> Session::take_runs() {
  Held held = held_live();
  held.drain();
  return tree_->take_runs();
}

CallPathTree &Session::tree_with(const std::vector<NodeIndex> &nodes, uint32_t phase) {
  tree(phase); // throws where there is no such phase
  CallPathTree &found = tree_->tree(phase);
  for (NodeIndex node : nodes)
    if (node >= found.nodes().size())
      throw Error(ErrorCode::kUsage, "the session has no node " + std::to_string(node));
  return found;
}

std::vector<double> Session::times_of_nodes(const std::vector<NodeIndex> &nodes, uint32_t phase) {
  Held held = held_live();
  tree_with(nodes, phase); // throws
  std::vector<double> found_ns;
  for (NodeIndex node : nodes)
    found_ns.push_back(static_cast<double>(tree_->time_of(phase, node)));
  return found_ns;
}

void Session::set_metric_of_nodes(const std::string &name, const std::vector<NodeIndex> &nodes,
                                  const std::vector<double> &values, uint32_t phase) {
  if (nodes.size() != values.size())
    throw Error(ErrorCode::kUsage, std::to_string(values.size()) + " values were given for " +
                                       std::to_string(nodes.size()) + " nodes");
  const MetricName &metric = MetricName::of(name, Aggregation::kInclusive);
  Held held = held_live();
  CallPathTree &target = tree_with(nodes, phase);
  for (size_t i = 0; i < nodes.size(); ++i)
    target.metrics().add(nodes[i], metric, values[i]);
  tree_->note_change(phase);
}

void Session::add_readings(const std::vector<EventCounter> &readings, uint32_t phase) {
  std::shared_ptr<TraceStream> stream;
  {
    Held held = held_live();
    SessionEvents *events = tree_->events();
    if (!events)
      return;
    events->add(phase, readings);
    events->push();
    stream = stream_;
  }
  if (stream)
    stream->wait_for_room();
}

void Session::add_counters(const std::vector<EventCounter> &counters) {
  Held held;
  if (SessionEvents *events = is_active_ ? tree_->events() : nullptr)
    events->add(phase_, counters);
}

// Phases.

uint32_t Session::advance_phase() {
  uint32_t phase = 0;
  uint64_t closed = 0;
  std::shared_ptr<PhaseCloser> closer;
  {
    Held held = held_live();
    phase = begin_phase(held);
    if (is_closing_behind(held)) {
      closer = closer_;
      closed = closer->closed();
    }
  }
  if (closer)
    closer->wait_for_room(closed);
  return phase;
}

uint32_t Session::begin_phase(Held &held) {
  live_phases_.insert(phase_);
  ++phase_;
  registry().open_epoch(held);
  live_phases_.insert(phase_);
  if (stream_ && phase_ == 1)
    stream_->number_files();
  bound_joins(held);
  if (closer_)
    closer_->phase_over();
  return phase_;
}

uint32_t Session::current_phase() {
  Held held = held_live();
  return phase_;
}

std::vector<uint32_t> Session::live_phases() {
  Held held = held_live();
  if (live_phases_.empty())
    return {phase_}; // never activated
  return {live_phases_.begin(), live_phases_.end()};
}

bool Session::is_phase_complete(uint32_t phase) {
  Held held = held_live();
  if (phase >= phase_)
    return false;
  held.drain();
  return held.epochs().is_complete(*tree_, phase);
}

void Session::drop_phase(uint32_t phase, Held &held) {
  retired_.add(held.epochs().drop(*tree_, phase));
  tree_->drop_phase(phase);
  live_phases_.erase(phase);
  closed_.erase(phase);
}

void Session::clear_phase(uint32_t phase, bool up_to) {
  Held held = held_live();
  if (!live_phases_.contains(phase) && phase != phase_ && !up_to)
    tree(phase); // throws, naming the live phases
  held.drain();
  std::vector<uint32_t> cleared;
  for (uint32_t number : live_phases_)
    if (number == phase || (up_to && number < phase))
      cleared.push_back(number);
  for (uint32_t number : cleared) {
    if (closer_ && number < phase_ && !closed_.contains(number))
      closer_->phase_cleared();
    drop_phase(number, held);
    if (stream_)
      stream_->discard_phase(number);
  }
  trim_counters();
  if (phase >= phase_) {
    // The current phase goes on, empty; a new epoch keeps late records of the old one out.
    drop_steady(held);
    registry().open_epoch(held);
    live_phases_.insert(phase_);
  }
  held.trim();
}

const CallPathTree &Session::tree(uint32_t phase) {
  if (live_phases_.contains(phase) || phase == phase_)
    return tree_->tree(phase);
  std::string live;
  for (uint32_t number : live_phases_)
    live += (live.empty() ? "" : ", ") + std::to_string(number);
  throw Error(ErrorCode::kSession, "Phase " + std::to_string(phase) + " has no data in session " +
                                       std::to_string(id_) + "; live phases: " + live);
}

FileFacts Session::facts(const CallPathTree &tree) const {
  FileFacts facts;
  facts.provenance = provenance_;
  facts.dropped = tree_->losses();
  uint64_t cold = tree.metrics().cold_distributions();
  if (cold != 0)
    facts.dropped["distributions reduced to moments"] += cold;
  return facts;
}

PhaseCopy Session::copy(uint32_t phase) {
  const CallPathTree &wanted = tree(phase);
  return {phase, tree_->revision(phase), wanted.copy_for_writing(), facts(wanted)};
}

std::string Session::encode(uint32_t phase, FileFormat format) {
  std::optional<PhaseCopy> copied; // others go on while it is encoded
  std::optional<PhaseCopy> steady;
  {
    Held held = held_live();
    held.drain();
    copied.emplace(copy(phase));
    if (steady_provenance_ && phase == 0 && format == FileFormat::kProton)
      steady.emplace(copy_steady());
  }
  if (steady)
    copied->facts.steady =
        encode_profile(steady->tree, DeviceTable::instance().list(), steady->facts, format);
  return encode_profile(copied->tree, DeviceTable::instance().list(), copied->facts, format);
}

std::vector<ScopeLaunch> Session::scope_launches(uint32_t phase) {
  Held held = held_live();
  held.drain();
  const std::vector<TreeNode> &nodes = tree(phase).nodes();
  std::vector<ScopeLaunch> launches;
  for (const auto &launch : tree_->timeline(phase).launches()) {
    ScopeLaunch &added = launches.emplace_back();
    for (NodeIndex node = launch->kernel; node != kNoNode; node = nodes[node].parent)
      added.path.push_back(nodes[node].name);
    std::reverse(added.path.begin(), added.path.end());
    added.launch = launch;
  }
  return launches;
}

size_t Session::row_count(uint32_t phase) {
  Held held = held_live();
  held.drain();
  return tree(phase).nodes().size();
}

bool Session::try_copy(int64_t deadline_ns, const std::map<uint32_t, uint64_t> &seen,
                       SessionCopy &out) {
  std::optional<Held> held = Held::until(deadline_ns);
  if (!held || !tree_)
    return false;
  held->drain();
  out.has_phases = phase_ > 0;
  out.follows_steps = follows_steps_;
  for (uint32_t phase : live_phases_) {
    out.live.insert(phase);
    auto known = seen.find(phase);
    if (known == seen.end() || known->second != tree_->revision(phase))
      out.phases.push_back(copy(phase));
  }
  return true;
}

void Session::sample_host() {
  Held held = held_live();
  tree_->sample_host();
}

// Steps of the program.

void Session::follow_steps() {
  {
    Held held = held_live();
    follows_steps_ = true;
  }
  registry().look_for_steps();
}

void Session::begin_window(bool is_first, Held &held) {
  if (is_first || !steady_) {
    drop_steady(held);
    steady_ = std::make_unique<SessionTree>(source_, tree_->generation(), tree_->times_scopes(),
                                            false, tree_->has_upstream_shape());
    if (tree_->samples_host())
      steady_->sample_host();
    return;
  }
  ++window_;
  if (window_ < 2)
    return;
  held.epochs().drop(*steady_, window_ - 2); // only the newest that is over is ever asked for
  steady_->drop_phase(window_ - 2);
  held.trim();
}

void Session::drop_steady(Held &held) {
  if (steady_)
    held.epochs().drop(*steady_);
  steady_.reset();
  window_ = 0;
}

bool Session::add_steady(std::string provenance) {
  Held held = held_live();
  if (!steady_ || window_ == 0 || phase_ > 0)
    return false;
  steady_provenance_ = std::move(provenance);
  return true;
}

PhaseCopy Session::copy_steady() {
  const CallPathTree &tree = steady_->tree(window_ - 1);
  PhaseCopy copied{window_ - 1, steady_->revision(window_ - 1), tree.copy_for_writing(), {}};
  copied.facts.provenance = *steady_provenance_;
  copied.facts.dropped = steady_->losses();
  return copied;
}

// Phases that are over, written while the session records.

void Session::close_phases(ClosingPlan plan) {
  std::shared_ptr<PhaseCloser> closer = PhaseCloser::open(shared_from_this(), std::move(plan));
  Held held = held_live();
  closer_ = std::move(closer);
}

std::vector<uint32_t> Session::take_written() {
  std::shared_ptr<PhaseCloser> closer;
  {
    Held held = held_live();
    closer = closer_;
  }
  return closer ? closer->take_written() : std::vector<uint32_t>();
}

void Session::advance_if_recorded() {
  Held held;
  if (!is_active_)
    return;
  held.drain();
  if (tree_->revision(phase_) != 0)
    begin_phase(held);
}

bool Session::is_closing_behind(Held &held) const {
  if (!closer_ || live_phases_.size() <= PhaseCloser::kMostBehind)
    return false;
  size_t waiting = 0;
  for (uint32_t phase : live_phases_)
    waiting += is_over(phase) && held.epochs().is_complete(*tree_, phase) &&
               rest_of(phase) != CounterLog::Rest::kOpen;
  return waiting > PhaseCloser::kMostBehind;
}

CounterLog::Rest Session::rest_of(uint32_t phase) const {
  const CounterLog *counters = joins_phases_ ? tree_->counters() : nullptr;
  return counters ? counters->rest_of(phase) : CounterLog::Rest::kNothing;
}

bool Session::waits_for_join(uint32_t phase) const {
  return joining_ == phase || rest_of(phase) != CounterLog::Rest::kNothing;
}

void Session::trim_counters() {
  uint32_t oldest = phase_;
  for (uint32_t phase : live_phases_)
    if (!closed_.contains(phase))
      oldest = std::min(oldest, phase);
  if (CounterLog *counters = tree_->counters())
    counters->forget_before(oldest);
}

std::optional<uint32_t> Session::next_to_join() {
  Held held = held_live();
  held.drain();
  joins_phases_ = true;
  release_joined();
  for (uint32_t phase : live_phases_)
    if (is_over(phase) && rest_of(phase) == CounterLog::Rest::kWhole &&
        held.epochs().is_complete(*tree_, phase))
      return phase;
  return std::nullopt;
}

void Session::release_joined() {
  if (std::exchange(joining_, std::nullopt) && closer_)
    closer_->joined();
}

void Session::end_joins() {
  Held held = held_live();
  joins_phases_ = false;
  release_joined();
}

void Session::lose_join() {
  Held held = held_live();
  tree_->lose(kNotJoined, 1);
}

void Session::bound_joins(Held &held) {
  size_t waiting = 0;
  for (auto phase = live_phases_.rbegin(); phase != live_phases_.rend(); ++phase) {
    if (!is_over(*phase) || rest_of(*phase) != CounterLog::Rest::kWhole ||
        !held.epochs().is_complete(*tree_, *phase) || ++waiting <= kMostUnjoined)
      continue;
    tree_->counters()->forget_phase(*phase);
    tree_->lose(kNotJoined, 1);
  }
}

std::optional<uint32_t> Session::find_finished(Held &held) const {
  for (uint32_t phase : live_phases_) {
    if (!is_over(phase))
      continue;
    if (held.epochs().is_complete(*tree_, phase) && !waits_for_join(phase))
      return phase;
    if (stream_) // timelines end one after the other
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<ClosedPhase> Session::close_next_phase(bool copies, bool frees) {
  Held held;
  if (!tree_)
    return std::nullopt;
  held.drain();
  std::optional<uint32_t> next = find_finished(held);
  if (!next)
    return std::nullopt;
  ClosedPhase closed;
  if (stream_) {
    stream_->set_facts(trace_end(*next));
    held.events().end_phase({tree_.get(), *next});
  }
  if (copies)
    closed.copy.emplace(copy(*next));
  if (frees) {
    if (stream_)
      stream_->publish_phase(*next);
    drop_phase(*next, held);
    held.trim();
  } else {
    closed_.insert(*next);
  }
  trim_counters();
  return closed;
}

// The timeline.

void Session::stream_timeline(StreamPlan plan) {
  std::shared_ptr<TraceStream> stream = TraceStream::open(std::move(plan));
  Held held = held_live();
  stream_ = std::move(stream);
  tree_->set_event_sink(stream_);
}

TraceEnd Session::trace_end(uint32_t phase, int64_t clock_drift_ns) {
  auto copied = std::make_shared<PhaseCopy>(copy(phase));
  // Encoded once, on the writer thread, for all formats.
  auto encode = [copied, encoded = std::make_shared<std::string>()]() -> std::string_view {
    try {
      if (encoded->empty())
        *encoded = encode_profile(copied->tree, DeviceTable::instance().list(), copied->facts,
                                  FileFormat::kProton);
    } catch (const Error &) { // no memory: slices still give a profile
    }
    return *encoded;
  };
  return {encode, tree_->losses(), clock_drift_ns};
}

void Session::end_recording() {
  Held held = held_live();
  held.drain();
  held.events().add_open_scopes(member());
  stop(held);
}

void Session::try_hand_over() {
  std::optional<Held> held = Held::until(monotonic_ns() + kHandOverPatience_ns);
  if (!held || !tree_ || !stream_)
    return;
  held->drain();
  held->events().push(member());
}

bool Session::settle(int64_t deadline_ns, bool is_end) {
  std::shared_ptr<PhaseCloser> closer;
  std::shared_ptr<TraceStream> stream;
  {
    Held held = held_live();
    held.drain();
    closer = closer_;
    stream = stream_;
    if (is_end && is_active_)
      held.events().add_open_scopes(member());
    held.events().push(member());
  }
  bool is_closed = !closer || closer->settle(deadline_ns);
  return (!stream || stream->catch_up(deadline_ns)) && is_closed;
}

std::vector<EndedFile> Session::end_timeline(std::vector<TraceFormat> formats,
                                             int64_t clock_drift_ns, int64_t deadline_ns) {
  std::shared_ptr<TraceStream> stream;
  std::shared_ptr<PhaseCloser> closer;
  StreamEnd ending;
  {
    Held held = held_live();
    stream = stream_;
    closer = closer_;
    ending.phases = live_phases_;
    if (ending.phases.empty())
      ending.phases.insert(phase_); // never activated
    for (uint32_t phase : ending.phases)
      if (stream && !closed_.contains(phase)) {
        stream->set_facts(trace_end(phase, clock_drift_ns));
        held.events().end_phase({tree_.get(), phase});
      }
  }
  ending.formats = std::move(formats);
  ending.hands_over = true;
  std::vector<EndedFile> files;
  if (stream)
    files = stream->end(std::move(ending), deadline_ns);
  if (std::string error = closer ? closer->error() : ""; !error.empty())
    throw Error(ErrorCode::kOutput, error);
  return files;
}

StreamCounts Session::stream_counts() {
  Held held = held_live();
  StreamCounts counts = stream_ ? stream_->counts() : StreamCounts();
  if (closer_)
    counts.waits += closer_->waits();
  return counts;
}

} // namespace proton
