# Warnings are errors in our own code; headers of others are included as SYSTEM.
function(proton_bench_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 and 13 report std::variant of vectors as uninitialised (GCC bug 105562).
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
  else()
    # As in GCC: -Wconversion without signs, and std::stable_sort of libstdc++ 12 is not deprecated.
    target_compile_options(${target} PRIVATE -Wno-sign-conversion -Wno-deprecated-declarations)
  endif()
endfunction()
