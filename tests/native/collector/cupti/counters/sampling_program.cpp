// The process that samples counters, without Python.
#include <unistd.h>

#include "collector/cupti/counters/sampling_service.h"

int main() {
  proton::serve_counter_samples(0);
  _exit(0); // LeakSanitizer would look at it from one more process, which outlives it
}
