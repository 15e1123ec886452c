# Test of the installation: installs the build into a new folder, builds the consumer with find_package, and runs it.
set(work ${build}/install-test)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "command failed: ${ARGV}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${build} --prefix ${work}/prefix)
run(${CMAKE_COMMAND} -G ${generator} -S ${CMAKE_CURRENT_LIST_DIR} -B ${work}/build
  -D CMAKE_BUILD_TYPE=Release -D CMAKE_PREFIX_PATH=${work}/prefix)
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/consumer)
run(${work}/prefix/bin/dyad --version)

# The manual page and the completions are generated from the options of the command.
foreach(file share/man/man1/dyad.1 share/bash-completion/completions/dyad share/zsh/site-functions/_dyad)
  file(STRINGS ${work}/prefix/${file} lines REGEX "checkpoint")
  if(NOT lines)
    message(FATAL_ERROR "${file} does not contain the option --checkpoint-every")
  endif()
endforeach()
