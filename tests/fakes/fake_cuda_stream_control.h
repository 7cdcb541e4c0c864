// How tests hold streams of libcuda's double and look at them. Included by fake_cuda_streams.h.
#pragma once

/// Later work of the stream waits until it is let go, or a thread waits for a stream.
EXPORT void fake_cuda_hold(void *stream) {
  std::lock_guard lock(work_mutex);
  streams()[stream].is_held = true;
}
EXPORT void fake_cuda_let_go(void *stream) {
  std::lock_guard lock(work_mutex);
  streams()[stream].is_held = false;
  run_streams();
}
/// Gives the stream work, as a launch of the target does.
EXPORT void fake_cuda_enqueue(void *stream, void (*work)(void *), void *argument) {
  std::lock_guard lock(work_mutex);
  enqueue(stream, {nullptr, 0, [=] { work(argument); }});
}
/// The stream that was created last.
EXPORT void *fake_cuda_newest_stream() {
  std::lock_guard lock(work_mutex);
  return newest_stream;
}
/// Streams and events that were not destroyed.
EXPORT size_t fake_cuda_handles() {
  std::lock_guard lock(work_mutex);
  return created_streams().size() + events().size();
}
