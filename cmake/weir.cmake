# The two words that the lists of targets are written in, weir_library() and weir_test(), and the compiler
# flags that every target shares.
include(GoogleTest)
find_package(Threads REQUIRED)
find_package(tl-expected REQUIRED)

# weir_flags: what every translation unit of ours is compiled with. Warnings are errors.
add_library(weir_flags INTERFACE)
# A designated initializer may leave members at their defaults: that is what it is for.
target_compile_options(weir_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Werror
                                            -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(weir_flags INTERFACE -Wno-string-conversion)  # WEIR_ASSERT(!"why this cannot be")
endif()
target_compile_definitions(weir_flags INTERFACE _GLIBCXX_ASSERTIONS)
target_include_directories(weir_flags INTERFACE "${CMAKE_SOURCE_DIR}/include" "${CMAKE_SOURCE_DIR}/src")
target_link_libraries(weir_flags INTERFACE tl::expected Threads::Threads)
if(WEIR_SANITIZE)
  target_compile_options(weir_flags INTERFACE -fsanitize=${WEIR_SANITIZE} -fno-sanitize-recover=all
                                              -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(weir_flags INTERFACE -Wno-maybe-uninitialized)  # g++ 12 is mistaken under a sanitizer
  endif()
  if(WEIR_SANITIZE MATCHES "thread" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    target_compile_options(weir_flags INTERFACE -mcx16)  # 16-byte atomics that ThreadSanitizer can see
  endif()
  target_link_options(weir_flags INTERFACE -fsanitize=${WEIR_SANITIZE})
endif()

# weir_library(NAME FOLDER [SOURCES file...] [WITHOUT regex] [LINKS target...])
#
# The library of a folder: its .cc files (or, with SOURCES, those given) but for tests, and what it may link.
function(weir_library name folder)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "WITHOUT" "SOURCES;LINKS")
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cc")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  if(arg_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "${arg_WITHOUT}")
  endif()
  list(APPEND sources ${arg_SOURCES})
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC weir_flags ${arg_LINKS})
endfunction()

# weir_test(NAME SOURCES file... LINKS target...)
#
# One GoogleTest binary. Each of its tests becomes a test of its own, NAME/Suite.Name, so that they run in
# parallel and `./dev test REGEX` finds them. Suites with Long in their name run only with --long.
function(weir_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINKS")
  if(NOT arg_SOURCES OR (WEIR_TEST_ONLY AND NOT name MATCHES "${WEIR_TEST_ONLY}"))
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE weir_flags ${arg_LINKS} GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE WEIR_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}/tests")
  string(REGEX REPLACE "_test$" "" label "${name}")
  gtest_discover_tests(${name} TEST_PREFIX "${label}/" TEST_FILTER "-*Long*.*" NO_PRETTY_VALUES
    DISCOVERY_TIMEOUT 60 PROPERTIES LABELS "${label}" TIMEOUT 300)
  gtest_discover_tests(${name} TEST_PREFIX "${label}/" TEST_FILTER "*Long*.*" NO_PRETTY_VALUES
    DISCOVERY_TIMEOUT 60 PROPERTIES LABELS long TIMEOUT 3600)
endfunction()
