# Compiles the .proto files of proto/ to one set of descriptors, embedded as bytes in a generated descriptors.cc, for
# reflection. CMake lists include this file for weir_descriptors(); the build runs it with `cmake -P` to write the
# source.

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  file(READ "${INPUT}" hex HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  file(WRITE "${OUTPUT}" "// Generated from the .proto files of proto/ by cmake/descriptors.cmake.\n"
    "#include \"protocol/grpc_services.h\"\n\nnamespace weir::protocol {\nnamespace {\n\n"
    "constexpr unsigned char kSet[] = {\n${bytes}\n};\n\n}  // namespace\n\n"
    "std::string_view descriptor_set() {\n"
    "  return {reinterpret_cast<const char*>(kSet), sizeof(kSet)};\n}\n\n}  // namespace weir::protocol\n")
  return()
endif()

find_program(PROTOC protoc REQUIRED)

# weir_descriptors(VARIABLE)
#
# Sets VARIABLE to the generated source. protoc puts a file behind those that it imports.
function(weir_descriptors variable)
  set(root "${CMAKE_SOURCE_DIR}/proto")
  file(GLOB_RECURSE protos CONFIGURE_DEPENDS "${root}/*.proto")
  set(set "${CMAKE_BINARY_DIR}/generated/descriptors.pb")
  set(output "${CMAKE_BINARY_DIR}/generated/descriptors.cc")
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${CMAKE_BINARY_DIR}/generated"
    COMMAND "${PROTOC}" "--proto_path=${root}" "--descriptor_set_out=${set}" --include_imports ${protos}
    COMMAND "${CMAKE_COMMAND}" "-DINPUT=${set}" "-DOUTPUT=${output}" -P "${CMAKE_SOURCE_DIR}/cmake/descriptors.cmake"
    DEPENDS ${protos} "${CMAKE_SOURCE_DIR}/cmake/descriptors.cmake" COMMENT "Describing the gRPC services" VERBATIM)
  set(${variable} "${output}" PARENT_SCOPE)
endfunction()
