// The process that evaluates samples, without Python.
#include "collector/cupti/counters/evaluation.h"

int main() {
  proton::serve_evaluations(0, 3);
  return 0;
}
