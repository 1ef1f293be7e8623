# The functions that define targets: weir_library(), weir_test(), and two that change how a library is compiled. Also
# the compiler flags that all targets share.
find_package(Threads REQUIRED)
find_package(tl-expected REQUIRED)

# weir_flags: the compiler flags of all our translation units. Warnings are errors.
add_library(weir_flags INTERFACE)
# We use designated initializers on purpose to leave members at their defaults.
target_compile_options(weir_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Werror
                                            -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(weir_flags INTERFACE -Wno-string-conversion)  # WEIR_ASSERT(!"why this cannot be")
  target_compile_options(weir_flags INTERFACE -Wthread-safety)  # checks base/mutex.h
  # Lets ccache reuse a precompiled header, whenever it was built.
  target_compile_options(weir_flags INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
  if(WEIR_SANITIZE MATCHES "address")
    target_compile_definitions(weir_flags INTERFACE __SANITIZE_ADDRESS__)  # as g++ defines it
  endif()
endif()
target_compile_definitions(weir_flags INTERFACE _GLIBCXX_ASSERTIONS)
target_include_directories(weir_flags INTERFACE "${CMAKE_SOURCE_DIR}/include" "${CMAKE_SOURCE_DIR}/src")
target_link_libraries(weir_flags INTERFACE tl::expected Threads::Threads)
if(WEIR_SANITIZE)
  target_compile_options(weir_flags INTERFACE -fsanitize=${WEIR_SANITIZE} -fno-sanitize-recover=all
                                              -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 has false positives under a sanitizer.
    target_compile_options(weir_flags INTERFACE -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overread
                                                -Wno-stringop-overflow)
  endif()
  if(WEIR_SANITIZE MATCHES "thread" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    target_compile_options(weir_flags INTERFACE -mcx16)  # 16-byte atomics that ThreadSanitizer can see
  endif()
  target_link_options(weir_flags INTERFACE -fsanitize=${WEIR_SANITIZE})
endif()
if(WEIR_FUZZ)
  # A fuzzer needs coverage of the code under test, not of the tests, which weir_test() marks.
  target_compile_options(weir_flags INTERFACE
    "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:WEIR_IS_TEST>>>:-fsanitize=fuzzer-no-link>")
endif()

# The code under test is optimised, the tests are not: so their compilation takes half as long.
set(WEIR_TEST_FLAGS -O0 -U_FORTIFY_SOURCE)

# The headers that nearly every file includes are precompiled: alone they take a second per file. The tests also have
# GoogleTest in theirs. weir_headers does without, so it checks that each public header includes what it needs.
set(WEIR_COMMON <algorithm> <array> <atomic> <charconv> <chrono> <cstdint> <cstring> <functional> <map> <memory>
  <optional> <span> <string> <string_view> <unordered_map> <utility> <vector> <tl/expected.hpp>)
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/generated/common.cc" CONTENT "")
foreach(common weir_common weir_common_shared)
  add_library(${common} OBJECT EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/generated/common.cc")
  target_link_libraries(${common} PRIVATE weir_flags)
  target_precompile_headers(${common} PRIVATE ${WEIR_COMMON})
endforeach()
set_target_properties(weir_common_shared PROPERTIES POSITION_INDEPENDENT_CODE ON)

# weir_shareable(NAME...): libraries whose objects may become part of a shared library.
function(weir_shareable)
  set_target_properties(${ARGN} PROPERTIES POSITION_INDEPENDENT_CODE ON
    PRECOMPILE_HEADERS_REUSE_FROM weir_common_shared)
endfunction()

# weir_together(NAME)
#
# Compiles a dozen sources of a target as one file, which takes half as long as one by one. With -DWEIR_APART=ON each
# file is compiled alone, which checks that it includes what it needs (tests/apart_long.sh).
function(weir_together name)
  if(WEIR_APART)
    return()
  endif()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${name} PRIVATE -Wno-subobject-linkage)  # g++ takes the combined file for a header
  endif()
endfunction()

# weir_library(NAME FOLDER [SOURCES file...] [WITHOUT regex] [LINKS target...] [APART])
#
# The library of a folder: its .cc files without tests (or, with SOURCES, the given files), and what it links.
# A dozen files are compiled as one, unless APART is given. The core is combined only under a sanitizer: its users
# link it from an archive of small objects.
function(weir_library name folder)
  cmake_parse_arguments(PARSE_ARGV 2 arg "APART" "WITHOUT" "SOURCES;LINKS")
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cc")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  if(arg_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "${arg_WITHOUT}")
  endif()
  list(APPEND sources ${arg_SOURCES})
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC weir_flags ${arg_LINKS})
  target_precompile_headers(${name} REUSE_FROM weir_common)
  if(NOT arg_APART AND (WEIR_SANITIZE OR NOT name MATCHES "^weir_(base|algorithm|table|store|limiter)$"))
    weir_together(${name})
  endif()
  if(WEIR_TEST_ONLY)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)  # built only if these tests link it
  endif()
endfunction()

# weir_test(NAME SOURCES file... LINKS target...)
#
# One GoogleTest binary. It is optimised if the test itself computes much, or calls a library often: the linker takes
# standard library functions that both contain from the test. Under a sanitizer, where a library inlines little, this
# affects more tests. In ctest its tests are called NAME/Suite.Name, or NAME/Suite (see discover.cmake), so that they
# run in parallel and `./dev test REGEX` finds them. Suites with Long in their name run only with --long. The tests of
# the larger folders are compiled together.
function(weir_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINKS")
  if(NOT arg_SOURCES OR (WEIR_TEST_ONLY AND NOT name MATCHES "${WEIR_TEST_ONLY}"))
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE weir_flags ${arg_LINKS} GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE WEIR_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}/tests")
  set_target_properties(${name} PROPERTIES WEIR_IS_TEST ON)
  set(computes OFF)
  set(calls_often "config_damage|eviction|fleet_seam_model")
  if(WEIR_SANITIZE)
    set(calls_often "accounts|control|eviction|gate_calls|matcher|oracle|script_store|settlement|rule_counts")
  endif()
  if(name MATCHES "^(tidy|schedule|differential|properties|linearizable|mutants)_test$")
    set(computes ON)
  elseif(NOT name MATCHES "^(${calls_often})_test$")
    target_compile_options(${name} PRIVATE ${WEIR_TEST_FLAGS})
    target_precompile_headers(${name} REUSE_FROM weir_common_test)
  endif()
  set(many_files "algorithm|base|cli|control|envoy|limiter|load_generator|on_fibers|plans|policy|protocol|redis|server")
  if(name MATCHES "^(${many_files}|table)_test$")
    weir_together(${name})
  endif()
  string(REGEX REPLACE "_test$" "" label "${name}")
  set(apart ${computes})
  if(name MATCHES "^(churn|config_damage|fleet_.*|kill|policy_text|process|table_mutants)_test$")
    set(apart ON)
  endif()
  weir_discover(${name} ${label} ${apart})
endfunction()
