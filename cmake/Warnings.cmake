# Warnings are errors for our own targets, and nobody else's business.
function(dyad_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # False alarms of GCC 12: Eigen's aligned temporaries, adding text to text, and files that are compiled together.
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized -Wno-restrict -Wno-subobject-linkage)
  endif()
endfunction()
