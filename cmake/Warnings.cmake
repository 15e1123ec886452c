# Warnings are errors for the targets of this project only.
function(dyad_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # False positives of GCC 12: Eigen's aligned temporaries, concatenation of strings, and unity builds.
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized -Wno-restrict -Wno-subobject-linkage)
    if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
      # Concatenation of strings again: std::string of a precompiled header is not treated as a system header.
      target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
    endif()
  endif()
endfunction()
