# Embeds the Lua scripts that run inside Redis. The script that decides is the algorithms' Lua twins, then the wrapper
# that calls them. A part that ends with a table of its functions becomes the body of load_NAME(), because Lua needs
# time to create functions and a call needs few of them. CMake lists include this file for weir_redis_script(); the
# build runs it with `cmake -P` to join the parts of that script.

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  set(joined "")
  foreach(part IN LISTS PARTS)
    file(READ "${part}" lua)
    get_filename_component(name "${part}" NAME_WE)
    if(lua MATCHES "\nreturn {[^}]*}\n$")
      set(lua "local function load_${name}()\n${lua}end\n")
    endif()
    string(APPEND joined "${lua}")
  endforeach()
  file(WRITE "${OUTPUT}" "${joined}")
  return()
endif()

# weir_redis_script(VARIABLE)
#
# Sets VARIABLE to the generated sources.
function(weir_redis_script variable)
  set(parts)
  foreach(part division fixed_window sliding_window sliding_log bucket concurrency)
    list(APPEND parts "${CMAKE_SOURCE_DIR}/src/algorithm/${part}.lua")
  endforeach()
  foreach(part script script_kinds script_runs script_requests)
    list(APPEND parts "${CMAKE_SOURCE_DIR}/src/fleet/${part}.lua")
  endforeach()
  set(joined "${CMAKE_BINARY_DIR}/generated/redis_script.lua")
  add_custom_command(OUTPUT "${joined}"
    COMMAND "${CMAKE_COMMAND}" "-DPARTS=${parts}" "-DOUTPUT=${joined}" -P "${CMAKE_SOURCE_DIR}/cmake/script.cmake"
    DEPENDS ${parts} "${CMAKE_SOURCE_DIR}/cmake/script.cmake" COMMENT "Joining the Redis script" VERBATIM)
  weir_embed(redis_script "${joined}" fleet/redis_script.h redis_script)
  foreach(name heartbeat shared_log)
    weir_embed(${name} fleet/${name}.lua fleet/redis_script.h ${name}_script)
  endforeach()
  set(${variable} ${redis_script} ${heartbeat} ${shared_log} PARENT_SCOPE)
endfunction()
