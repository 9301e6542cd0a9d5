# SPDX-License-Identifier: Apache-2.0
# cmake -D build= -D source= -D scratch= -D generator= -D compiler= -D version= -D oshrun= -P install_and_use.cmake
# `oshrun` is the launcher of the shmem module, empty if that was not built.
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${scratch})
run(${CMAKE_COMMAND} --install ${build} --prefix ${scratch}/first)
# A package that knows where it was built or first installed fails from here on.
file(RENAME ${scratch}/first ${scratch}/prefix)
run(${CMAKE_COMMAND} -S ${source} -B ${scratch}/project -G ${generator} -D CMAKE_CXX_COMPILER=${compiler}
  -D CMAKE_PREFIX_PATH=${scratch}/prefix -D CMAKE_FIND_USE_PACKAGE_REGISTRY=OFF -D shoal_version=${version})
run(${CMAKE_COMMAND} --build ${scratch}/project)
run(${scratch}/project/user)
if(oshrun)
  set(ENV{OMPI_ALLOW_RUN_AS_ROOT} 1)
  set(ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} 1)
  run(${oshrun} -n 2 --oversubscribe --bind-to none ${scratch}/project/user)
endif()
run(${scratch}/prefix/bin/shoal --version)
