# Reads the standard library's headers once for a target and those that link it: the core and its tests.
# The module is built without.
function(proton_bench_standard_headers target)
  if(PROTON_BENCH_BUILD_MODULE OR PROTON_BENCH_COVERAGE)
    return()
  endif()
  if(NOT target STREQUAL "proton_core")
    target_precompile_headers(${target} REUSE_FROM proton_core)
    return()
  endif()
  target_precompile_headers(
    ${target} PRIVATE
    <algorithm> <array> <atomic> <deque> <functional> <map> <memory> <mutex> <optional> <set> <span>
    <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector>)
endfunction()
