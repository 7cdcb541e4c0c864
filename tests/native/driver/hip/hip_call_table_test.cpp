// The one table of HIP's calls.
#include "driver/hip/hip_call_table.h"

#include <algorithm>
#include <vector>

#include "check.h"

namespace {

#define SDK_NUMBER(name, form, sdk, ...) sdk,
#define TRACER_NUMBER(name, form, sdk, tracer) tracer,
const std::vector<int> kSdkNumbers{
    PROTON_HIP_CALLS(SDK_NUMBER) PROTON_HIP_SDK_CALLS(SDK_NUMBER) // both of programs and of threads
    PROTON_HIP_THREAD_CALLS(SDK_NUMBER)};
const std::vector<int> kTracerNumbers{PROTON_HIP_CALLS(TRACER_NUMBER)};
const std::vector<int> kThreadNumbers{PROTON_HIP_THREAD_CALLS(SDK_NUMBER)};

bool are_distinct(std::vector<int> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end();
}

} // namespace

TEST(no_two_calls_have_one_number) {
  CHECK(are_distinct(kSdkNumbers));
  CHECK(are_distinct(kTracerNumbers));
}

TEST(calls_of_threads_lie_between_the_first_and_the_last) {
  CHECK(std::is_sorted(kThreadNumbers.begin(), kThreadNumbers.end()));
  auto others = kSdkNumbers.size() - kThreadNumbers.size();
  CHECK(std::none_of(kSdkNumbers.begin(), kSdkNumbers.begin() + static_cast<long>(others),
                     [](int number) {
                       return number >= kThreadNumbers.front() && number <= kThreadNumbers.back();
                     }));
}
