// The process that samples counters, without Python.
#include "collector/cupti/counters/sampling_service.h"

int main() {
  proton::serve_counter_samples(0);
  return 0;
}
