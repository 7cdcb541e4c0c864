# Chooses how Python frames are read: a trial compiles the raw walk. Where the interpreter's
# headers are missing, of an unknown version or of a build without a GIL, the public API is used.
function(proton_bench_python_frames target)
  set(PROTON_BENCH_RAW_FRAMES 0)
  if(NOT PROTON_BENCH_PUBLIC_FRAMES)
    set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
    set(CMAKE_TRY_COMPILE_CONFIGURATION Release)
    list(JOIN Python_INCLUDE_DIRS "\;" headers)
    try_compile(raw_frames_compile
      SOURCES "${CMAKE_CURRENT_SOURCE_DIR}/src/context/python/python_frames_raw.cpp"
      NO_CACHE
      CMAKE_FLAGS
        "-DINCLUDE_DIRECTORIES=${headers}\;${CMAKE_CURRENT_SOURCE_DIR}/src"
      CXX_STANDARD 20
      CXX_STANDARD_REQUIRED ON
      OUTPUT_VARIABLE raw_frames_output)
    if(raw_frames_compile)
      set(PROTON_BENCH_RAW_FRAMES 1)
    else()
      message(VERBOSE "${raw_frames_output}")
    endif()
  endif()
  if(PROTON_BENCH_RAW_FRAMES)
    message(STATUS "Python frames: the interpreter's own chain")
  else()
    message(STATUS "Python frames: the public API")
  endif()
  target_compile_definitions(${target} PUBLIC
    PROTON_BENCH_RAW_FRAMES=${PROTON_BENCH_RAW_FRAMES})
endfunction()
