# The kernels' PTX as a source file, so that the module needs no other file.
function(proton_bench_device_code sources)
  set(device "${CMAKE_CURRENT_SOURCE_DIR}/src/collector/instrumentation/device")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${device}/reduce_records.ptx")
  file(READ "${device}/reduce_records.ptx" device_code)
  configure_file("${device}/device_code.cpp.in" "${CMAKE_CURRENT_BINARY_DIR}/device_code.cpp" @ONLY)
  set(${sources} "${${sources}};${CMAKE_CURRENT_BINARY_DIR}/device_code.cpp" PARENT_SCOPE)
endfunction()
