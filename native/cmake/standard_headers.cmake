# Reads the standard library's headers once for a target and those that link it, which halves the time
# of a build with tests. The module is built without: a file that lacks an include fails there.
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

# Compiles each folder of a target as one file, which halves its time again. Only for sanitizers:
# what is released or timed is compiled file by file.
function(proton_bench_whole_folders target)
  if(NOT PROTON_BENCH_SANITIZE OR PROTON_BENCH_COVERAGE)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    file(STRINGS ${source} opened REGEX "^using namespace ")
    if(NOT opened) # what a file opens would be open in the rest of its folder
      string(MAKE_C_IDENTIFIER "${folder}" group)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # It takes what a source of the folder declares for what a header declares.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()
