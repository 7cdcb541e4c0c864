// How the frames of the calling thread are read. PROTON_BENCH_RAW_FRAMES (set by the build) says
// whether the interpreter's own chain can be used; the public frame API always can.
#pragma once

#include <span>
#include <vector>

#include "context/python/python_path.h"

namespace proton {

/// The chain of interpreter frames, for the CPython versions whose layout is known and that have a
/// GIL. Only the thread itself changes its chain, so these need no GIL.
/// [any thread that has frames or none, with or without the GIL; the interpreter is not finalizing]
namespace raw_frames {

constexpr bool kNeedsGil = false;
/// True when the thread's frames are `path` (outermost first).
bool are(std::span<const PathFrame> path) noexcept;
/// Replaces `sites` by the thread's frames, innermost first, with those that are not shown.
void list(std::vector<Site> &sites);
/// True for what has no place in a traceback: entries from C, and frames that have not begun. The
/// site is one of a live frame, or its code object is owned. [GIL held]
bool is_hidden(const Site &site) noexcept;

} // namespace raw_frames

/// The frame API that CPython documents. [GIL held]
namespace public_frames {

constexpr bool kNeedsGil = true;
bool are(std::span<const PathFrame> path) noexcept;
void list(std::vector<Site> &sites);
bool is_hidden(const Site &site) noexcept;

} // namespace public_frames

#if PROTON_BENCH_RAW_FRAMES
namespace python_frames = raw_frames;
#else
namespace python_frames = public_frames;
#endif

} // namespace proton
