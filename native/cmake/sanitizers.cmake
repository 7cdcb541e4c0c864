# PROTON_BENCH_SANITIZE is a list for -fsanitize: "address,undefined" or "thread".
function(proton_bench_sanitize target)
  if(NOT PROTON_BENCH_SANITIZE)
    return()
  endif()
  # -O1 finds the same as -O2 and builds in little more than half the time.
  set(flags -fsanitize=${PROTON_BENCH_SANITIZE} -fno-omit-frame-pointer -g1 -O1)
  if(PROTON_BENCH_SANITIZE MATCHES "undefined")
    # Not part of "undefined": a double that no integer holds.
    list(APPEND flags -fsanitize=float-cast-overflow)
    list(APPEND flags -fno-sanitize-recover=undefined,float-cast-overflow)
  endif()
  target_compile_options(${target} PUBLIC ${flags})
  target_link_options(${target} PUBLIC ${flags})
endfunction()

# Makes every block of a target report to tests/native/fuzz/driver.cpp that it was reached.
function(proton_bench_tell_blocks target)
  if(PROTON_BENCH_COVERAGE)
    target_compile_options(${target} PRIVATE -fsanitize-coverage=trace-pc)
  endif()
endfunction()
