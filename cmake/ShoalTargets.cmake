# SPDX-License-Identifier: Apache-2.0
# How every target of Shoal is made: one function a kind, so that flags, output folders and
# install rules are said once.
include_guard()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# The build tree mirrors the installed one, so that transports are found the same way in both.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR})
set(SHOAL_MODULE_DIR ${CMAKE_INSTALL_LIBDIR}/shoal)
set(CMAKE_INSTALL_RPATH "$ORIGIN;$ORIGIN/../${CMAKE_INSTALL_LIBDIR};$ORIGIN/..")

# Language level, warnings and sanitizers of Shoal's own code (not passed on to its users).
add_library(shoal_flags INTERFACE)
target_compile_options(shoal_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow
  $<$<BOOL:${SHOAL_WERROR}>:-Werror>)
if(SHOAL_SANITIZE)
  target_compile_options(shoal_flags INTERFACE -fsanitize=${SHOAL_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(shoal_flags INTERFACE -fsanitize=${SHOAL_SANITIZE})
endif()
if(SHOAL_SANITIZE MATCHES "thread")
  # The thread sanitizer of GCC 12 does not start where the kernel randomises addresses by more than
  # 28 bits (sysctl vm.mmap_rnd_bits), so tests run without randomisation where that is allowed.
  execute_process(COMMAND setarch -R true RESULT_VARIABLE refused OUTPUT_QUIET ERROR_QUIET)
  if(NOT refused)
    set(CMAKE_CROSSCOMPILING_EMULATOR setarch -R)
  endif()
endif()

# shoal_precompile(TARGET HEADERS ...)
# Headers that most sources of a large target include are read once. Sources with options of their own
# cannot use them. Not with ccache, which does better without.
function(shoal_precompile target)
  if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache")
    return()
  endif()
  target_precompile_headers(${target} PRIVATE ${ARGN})
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    if(options)
      set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
endfunction()
set(shoal_common_headers <fmt/format.h> <algorithm> <array> <atomic> <chrono> <complex> <functional> <map> <memory>
  <optional> <ranges> <span> <string> <thread> <vector>)

# shoal_library(NAME SOURCES ... PUBLIC ... PRIVATE ...)
# A layer: libshoal_NAME, known to users as shoal::NAME. PUBLIC and PRIVATE are link dependencies.
function(shoal_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  set(target shoal_${name})
  add_library(${target} SHARED ${arg_SOURCES})
  add_library(shoal::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name}
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE} $<BUILD_INTERFACE:shoal_flags>)
  install(TARGETS ${target} EXPORT shoalTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/shoal/${name} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/shoal)
endfunction()

# shoal_transport(NAME SOURCES ... PRIVATE ...)
# A transport: lib/shoal/transport_NAME.so, loaded at run time.
function(shoal_transport name)
  cmake_parse_arguments(arg "" "" "SOURCES;PRIVATE" ${ARGN})
  set(target shoal_transport_${name})
  add_library(${target} MODULE ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME transport_${name}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${SHOAL_MODULE_DIR})
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PRIVATE shoal::comm ${arg_PRIVATE} shoal_flags)
  install(TARGETS ${target} LIBRARY DESTINATION ${SHOAL_MODULE_DIR})
endfunction()

# shoal_executable(NAME SOURCES ... PRIVATE ...)
# A program. It exports its symbols: an OpenSHMEM library loaded at run time finds the program's
# static data by the symbol _end (docs/decisions/0003-programs-export-end.md).
function(shoal_executable name)
  cmake_parse_arguments(arg "" "" "SOURCES;PRIVATE" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES ENABLE_EXPORTS ON DEFINE_SYMBOL "")
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE ${arg_PRIVATE} shoal_flags)
endfunction()

# shoal_test(NAME SOURCES ... PRIVATE ... LABELS ... TIMEOUT seconds PROCESSORS n)
# A GoogleTest program of tests/FOLDER; each of its cases is one ctest test FOLDER.NAME.Suite.Case
# (FOLDER.Suite.Case where NAME is the same), with the label FOLDER.
# PROCESSORS says how many busy ranks or threads a case starts (1 if absent): ctest starts no more
# cases beside it than fit, and runs it alone if it wants more than there are.
# Labels with a meaning:
#   threads   runs several threads; the thread sanitizer's build holds these tests only
#   launcher  starts MPI or OpenSHMEM jobs; left out of the sanitizers' builds
function(shoal_test name)
  cmake_parse_arguments(arg "" "TIMEOUT;PROCESSORS" "SOURCES;PRIVATE;LABELS" ${ARGN})
  if(SHOAL_SANITIZE AND "launcher" IN_LIST arg_LABELS)
    return()
  elseif(SHOAL_SANITIZE MATCHES "thread" AND NOT "threads" IN_LIST arg_LABELS)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(NOT arg_PROCESSORS)
    set(arg_PROCESSORS 1)
  endif()
  shoal_executable(test_${name} SOURCES ${arg_SOURCES} PRIVATE ${arg_PRIVATE} GTest::gtest_main)
  if(TARGET shoal_test_headers)
    target_precompile_headers(test_${name} REUSE_FROM shoal_test_headers)
  endif()
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  set(prefix ${SHOAL_TEST_PREFIX}${folder}.${name}.)
  if(name STREQUAL folder)
    set(prefix ${SHOAL_TEST_PREFIX}${folder}.)
  endif()
  gtest_discover_tests(test_${name} TEST_PREFIX ${prefix} DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${arg_TIMEOUT} PROCESSORS ${arg_PROCESSORS}
    ENVIRONMENT "SHOAL_TEST_MODEL=${SHOAL_TEST_MODEL}")
  # Apart, since gtest_discover_tests cannot take a list as a property's value.
  set(labels_file ${CMAKE_CURRENT_BINARY_DIR}/test_${name}_labels.cmake)
  file(WRITE ${labels_file} "set_tests_properties(\${test_${name}_TESTS} PROPERTIES LABELS \"${folder};${arg_LABELS}\")\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels_file})
endfunction()
