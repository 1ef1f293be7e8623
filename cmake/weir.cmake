# The words that the lists of targets are written in, weir_library(), weir_test() and two that change how a library is
# compiled, and the compiler flags that every target shares.
find_package(Threads REQUIRED)
find_package(tl-expected REQUIRED)

# weir_flags: what every translation unit of ours is compiled with. Warnings are errors.
add_library(weir_flags INTERFACE)
# A designated initializer may leave members at their defaults: that is what it is for.
target_compile_options(weir_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Werror
                                            -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(weir_flags INTERFACE -Wno-string-conversion)  # WEIR_ASSERT(!"why this cannot be")
  # A compiler cache knows a precompiled header again whenever it was made.
  target_compile_options(weir_flags INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
  if(WEIR_SANITIZE MATCHES "address")
    target_compile_definitions(weir_flags INTERFACE __SANITIZE_ADDRESS__)  # as g++ says it
  endif()
endif()
target_compile_definitions(weir_flags INTERFACE _GLIBCXX_ASSERTIONS)
target_include_directories(weir_flags INTERFACE "${CMAKE_SOURCE_DIR}/include" "${CMAKE_SOURCE_DIR}/src")
target_link_libraries(weir_flags INTERFACE tl::expected Threads::Threads)
if(WEIR_SANITIZE)
  target_compile_options(weir_flags INTERFACE -fsanitize=${WEIR_SANITIZE} -fno-sanitize-recover=all
                                              -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 is mistaken under a sanitizer.
    target_compile_options(weir_flags INTERFACE -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overread
                                                -Wno-stringop-overflow)
  endif()
  if(WEIR_SANITIZE MATCHES "thread" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    target_compile_options(weir_flags INTERFACE -mcx16)  # 16-byte atomics that ThreadSanitizer can see
  endif()
  target_link_options(weir_flags INTERFACE -fsanitize=${WEIR_SANITIZE})
endif()
if(WEIR_FUZZ)
  # A fuzzer has to reach what is tested, not the tests, which weir_test() marks.
  target_compile_options(weir_flags INTERFACE
    "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:WEIR_IS_TEST>>>:-fsanitize=fuzzer-no-link>")
endif()

# What is tested is optimised, the tests are not: so they are compiled in half of the time.
set(WEIR_TEST_FLAGS -O0 -U_FORTIFY_SOURCE)

# What nearly every file includes is read once for all of them: by itself it takes a second of each. The tests have
# GoogleTest beside it. That a public header brings along what it needs is seen by weir_headers, which does without.
set(WEIR_COMMON <algorithm> <array> <atomic> <charconv> <chrono> <cstdint> <cstring> <functional> <map> <memory>
  <optional> <span> <string> <string_view> <unordered_map> <utility> <vector> <tl/expected.hpp>)
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/generated/common.cc" CONTENT "")
foreach(common weir_common weir_common_shared)
  add_library(${common} OBJECT EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/generated/common.cc")
  target_link_libraries(${common} PRIVATE weir_flags)
  target_precompile_headers(${common} PRIVATE ${WEIR_COMMON})
endforeach()
set_target_properties(weir_common_shared PROPERTIES POSITION_INDEPENDENT_CODE ON)

# weir_shareable(NAME...): libraries that a shared one may be made of.
function(weir_shareable)
  set_target_properties(${ARGN} PROPERTIES POSITION_INDEPENDENT_CODE ON
    PRECOMPILE_HEADERS_REUSE_FROM weir_common_shared)
endfunction()

# weir_together(NAME)
#
# Compiles a dozen sources of a target as one, which takes half of the time. Where another build does without, that one
# sees whether each file stands on its own.
function(weir_together name)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${name} PRIVATE -Wno-subobject-linkage)  # which takes such a file for a header
  endif()
endfunction()

# weir_library(NAME FOLDER [SOURCES file...] [WITHOUT regex] [LINKS target...] [APART])
#
# The library of a folder: its .cc files (or, with SOURCES, those given) but for tests, and what it may link.
# Under a sanitizer some files are compiled as one, unless they are to be APART.
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
  if(WEIR_SANITIZE AND NOT arg_APART)
    weir_together(${name})
  endif()
  if(WEIR_TEST_ONLY)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)  # but for what these tests link
  endif()
endfunction()

# weir_test(NAME SOURCES file... LINKS target...)
#
# One GoogleTest binary, optimised if the test itself has much to compute, or if it calls a library often: the linker
# takes the functions of the standard library that both have from the test. Under a sanitizer, where a library inlines
# little, that slows down more of them. Its tests are NAME/Suite.Name for ctest, or NAME/Suite (see discover.cmake), so
# that they run in parallel and `./dev test REGEX` finds them. Suites with Long in their name run only with --long. The
# tests of the larger folders are compiled together.
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
