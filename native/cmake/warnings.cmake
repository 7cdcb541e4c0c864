# Warnings are errors in our own code; headers of others are included as SYSTEM.
function(proton_bench_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 and 13 report std::variant of vectors as uninitialised (GCC bug 105562).
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
  endif()
endfunction()
