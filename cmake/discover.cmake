# Lists the tests of a GoogleTest binary in a file that ctest includes. CMake lists include this file for
# weir_discover(). After the binary is linked, `cmake -P` runs it: then it lists the binary's tests and writes the file.
#
# Each test is a test of ctest, LABEL/Suite.Name. If WEIR_TOGETHER is in the environment, as in `./dev test` without a
# regex, each suite is one test, LABEL/Suite: starting a process for each of thousands of tests takes longer than most
# tests. Binaries with long tests are APART, so that several processors can share their tests. Suites with Long in their
# name get the label `long`, and a time-out of an hour instead of twenty minutes.

# weir_cost(VARIABLE NAME)
#
# A cost of 50 to 99: always the same for a name, and in random order over many names. ctest starts tests by their cost.
# So tests that compute run beside tests that wait, and tests without a cost run last.
function(weir_cost variable name)
  string(MD5 digits "${name}")
  string(SUBSTRING "${digits}" 0 4 digits)
  math(EXPR cost "50 + 0x${digits} % 50")
  set(${variable} "${cost}" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  execute_process(COMMAND "${BINARY}" --gtest_list_tests OUTPUT_VARIABLE list RESULT_VARIABLE result TIMEOUT 120)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${BINARY} --gtest_list_tests: ${result}\n${list}")
  endif()
  get_filename_component(folder "${BINARY}" DIRECTORY)
  # Started first, because a run that ends with one of these leaves processors idle. ctest measures how long each test
  # takes, but has no such data in a new checkout.
  set(takes_long "churn|config_damage|control|differential|docs|listeners|eviction|examples|fleet_seam_model|"
    "full_arena|full_table|linearizable|matcher|mutants|oracle|plans|policy|redis|script_store|settlement|"
    "store_contract|table|table_mutants|rule_counts|usage")
  string(REPLACE ";" "" takes_long "${takes_long}")
  set(takes_longest "plans/Postgres|full_table/|store_contract/|table/Resize|linearizable/|differential/Engine")
  # One test of ctest, appended to VARIABLE.
  function(append_test variable name filter is_long)
    set(properties "LABELS [==[${LABEL}]==] TIMEOUT 1200")
    if(is_long)
      set(properties "LABELS long TIMEOUT 3600")
    endif()
    if("${LABEL}/${name}" MATCHES "^(${takes_longest})")
      string(APPEND properties " COST 100")
    elseif(LABEL MATCHES "^(${takes_long})$")
      weir_cost(cost "${LABEL}/${name}")
      string(APPEND properties " COST ${cost}")
    endif()
    set(text "${${variable}}")
    string(APPEND text "add_test([==[${LABEL}/${name}]==] [==[${RUNNER}]==] [==[${BINARY}]==]"
      " [==[--gtest_filter=${filter}]==])\nset_tests_properties([==[${LABEL}/${name}]==] PROPERTIES ${properties}"
      " WORKING_DIRECTORY [==[${folder}]==])\n")
    set(${variable} "${text}" PARENT_SCOPE)
  endfunction()
  set(each "")
  set(together "")
  string(REGEX REPLACE "[^\n]*Running main[^\n]*\n" "" list "${list}")
  string(REGEX REPLACE " +#[^\n]*" "" list "${list}")  # the values of parameters
  string(REPLACE "\n" ";" list "${list}")
  foreach(line IN LISTS list)
    if(line MATCHES "^ +(.+)$")
      append_test(each "${suite}.${CMAKE_MATCH_1}" "${suite}.${CMAKE_MATCH_1}" "${is_long}")
    elseif(line MATCHES "^(.+)\\.$")
      set(suite "${CMAKE_MATCH_1}")
      string(FIND "${suite}" "Long" at)
      set(is_long OFF)
      if(at GREATER_EQUAL 0)
        set(is_long ON)
      endif()
      append_test(together "${suite}" "${suite}.*" "${is_long}")
    endif()
  endforeach()
  if(APART)
    set(together "${each}")
  endif()
  file(WRITE "${OUTPUT}" "if(DEFINED ENV{WEIR_TOGETHER})\n${together}else()\n${each}endif()\n")
  return()
endif()

# weir_discover(TARGET LABEL IS_APART)
function(weir_discover target label is_apart)
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${target}_tests.cmake")
  add_custom_command(TARGET ${target} POST_BUILD BYPRODUCTS "${output}" VERBATIM
    COMMAND "${CMAKE_COMMAND}" "-DBINARY=$<TARGET_FILE:${target}>" "-DLABEL=${label}" "-DOUTPUT=${output}"
            "-DAPART=${is_apart}" "-DRUNNER=$<TARGET_FILE:run_test_alone>"
            -P "${CMAKE_SOURCE_DIR}/cmake/discover.cmake")
  set(include "${CMAKE_CURRENT_BINARY_DIR}/${target}_include.cmake")
  file(WRITE "${include}" "if(EXISTS \"${output}\")\n  include(\"${output}\")\nelse()\n"
    "  add_test(${target}_NOT_BUILT ${target}_NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${include}")
  add_dependencies(${target} run_test_alone)
endfunction()
