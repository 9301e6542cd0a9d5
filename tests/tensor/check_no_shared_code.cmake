# SPDX-License-Identifier: Apache-2.0
# Fails when an object file of a kernel set with instruction-set flags defines or needs a weak symbol, that
# is, code which the linker could share with the rest of the program (src/tensor/raw_kernels.h).
# Called with -DNM=... -DOBJECTS=a.o;b.o
if(NOT OBJECTS)
  message(FATAL_ERROR "no object files to look at")
endif()
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND ${NM} -C ${object} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  if(NOT symbols MATCHES "shoal::tensor")
    message(FATAL_ERROR "${object}: no symbols of a kernel set found; is NM (${NM}) right?")
  endif()
  string(REGEX MATCHALL "[^\n]* [VWuvw] [^\n]*" shared "${symbols}")
  if(shared)
    message(FATAL_ERROR "${object} emits code that the linker may share: ${shared}")
  endif()
endforeach()
