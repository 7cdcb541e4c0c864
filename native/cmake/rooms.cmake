# Makes each room of a target one file for the compiler, which takes a fourth of the time: most of the
# code of a source is that of headers. So names in anonymous namespaces are unique in their room.
function(proton_bench_whole_rooms target)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    string(REGEX MATCH "/native/src/((collector/)?[a-z]+)/" room ${source})
    string(MAKE_C_IDENTIFIER "${CMAKE_MATCH_1}" group)
    if(room)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # It takes what a source of the room declares for what a header declares.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()
