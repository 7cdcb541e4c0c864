// How much of a sweep is run: all of it in `make nightly`, a part that stands for it elsewhere.
#pragma once

#include <cstdlib>

inline int how_many(int whole, int keep) {
  return std::getenv("PROTON_BENCH_STRESS") != nullptr ? whole : keep;
}
