# Assembles the script that runs inside Redis: the algorithms' Lua twins, then the wrapper that calls them,
# as one string in a generated fleet_script.cc. A twin that ends with a table of its functions becomes the body of
# load_NAME(): making functions costs time, and a call needs few of them. Included, it defines
# weir_redis_script(); run with `cmake -P`, it is the assembling itself.

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  set(text "")
  foreach(part IN LISTS PARTS)
    file(READ "${part}" lua)
    get_filename_component(name "${part}" NAME_WE)
    if(lua MATCHES "\nreturn {[^}]*}\n$")
      set(lua "local function load_${name}()\n${lua}end\n")
    endif()
    string(APPEND text "${lua}")
  endforeach()
  if(text MATCHES "\\)weir_lua\"")
    message(FATAL_ERROR "a Lua file contains )weir_lua\", which ends the C++ literal that holds it")
  endif()
  file(WRITE "${OUTPUT}" "// Generated from the .lua files of src/ by cmake/script.cmake.\n"
    "#include \"fleet/redis_script.h\"\n\nnamespace weir {\n\n"
    "std::string_view redis_script() {\n  return R\"weir_lua(${text})weir_lua\";\n}\n\n}  // namespace weir\n")
  return()
endif()

# weir_redis_script(VARIABLE)
#
# Sets VARIABLE to the generated source.
function(weir_redis_script variable)
  set(parts)
  foreach(part division fixed_window sliding_window sliding_log bucket concurrency)
    list(APPEND parts "${CMAKE_SOURCE_DIR}/src/algorithm/${part}.lua")
  endforeach()
  foreach(part script script_kinds script_requests)
    list(APPEND parts "${CMAKE_SOURCE_DIR}/src/fleet/${part}.lua")
  endforeach()
  set(output "${CMAKE_BINARY_DIR}/generated/fleet_script.cc")
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DPARTS=${parts}" "-DOUTPUT=${output}" -P "${CMAKE_SOURCE_DIR}/cmake/script.cmake"
    DEPENDS ${parts} "${CMAKE_SOURCE_DIR}/cmake/script.cmake" COMMENT "Assembling the Redis script" VERBATIM)
  set(${variable} "${output}" PARENT_SCOPE)
endfunction()
