# Enables warnings, as errors, for a target of this project.
function(dyad_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 has false positives in Eigen's aligned temporaries, in the concatenation of strings, and in unity builds.
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized -Wno-restrict -Wno-subobject-linkage)
    # Notes about vectors in parameters of inlined functions, whose calling convention GCC 4.6 changed.
    target_compile_options(${target} PRIVATE -Wno-psabi)
    if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
      # With precompiled headers, std::string is not treated as a system header, and its concatenation gives false positives.
      target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
    endif()
  endif()
endfunction()
