// Two ways to read the frames of the calling thread. PROTON_BENCH_RAW_FRAMES (set by the build)
// says whether the interpreter's own chain can be used; the public frame API always can.
#pragma once

#include <span>
#include <vector>

#include "context/python/python_path.h"

struct _ts; // PyThreadState

namespace proton {

/// The chain of interpreter frames, for the CPython versions whose layout is known and that have a
/// GIL. Only the thread itself changes its chain, so these need no GIL.
/// [any thread, with or without frames and the GIL; the interpreter is not finalizing]
namespace raw_frames {

constexpr bool kNeedsGil = false;
/// True when the thread's frames are `path` (outermost first).
bool are(std::span<const PathFrame> path) noexcept;
/// Replaces `sites` by the thread's frames, innermost first, including those that are not shown.
void list(std::vector<Site> &sites);
/// Same for the frames of any thread. [GIL held: no thread changes its chain without]
void list_of(_ts *thread, std::vector<Site> &sites);
/// True for a frame that a traceback leaves out: an entry from C, or a frame that has not begun.
/// The site belongs to a live frame, or its code object is owned. [GIL held]
bool is_hidden(const Site &site) noexcept;

} // namespace raw_frames

/// The frame API that CPython documents. [GIL held]
namespace public_frames {

constexpr bool kNeedsGil = true;
bool are(std::span<const PathFrame> path) noexcept;
void list(std::vector<Site> &sites);
void list_of(_ts *thread, std::vector<Site> &sites);
bool is_hidden(const Site &site) noexcept;

} // namespace public_frames

#if PROTON_BENCH_RAW_FRAMES
namespace python_frames = raw_frames;
#else
namespace python_frames = public_frames;
#endif

} // namespace proton
