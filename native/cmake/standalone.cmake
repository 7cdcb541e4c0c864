# An executable that runs the core without the Python module.
function(proton_bench_standalone name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE proton_core)
  if(TARGET Python::Python)
    target_link_libraries(${name} PRIVATE Python::Python)
  else()
    # Without libpython, code that runs no Python still links and runs.
    target_link_options(${name} PRIVATE LINKER:--unresolved-symbols=ignore-all)
  endif()
  proton_bench_warnings(${name})
  proton_bench_standard_headers(${name})
endfunction()
