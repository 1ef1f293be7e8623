# The library for embedders: libweir.a and libweir.so, the headers, a CMake package and a pkg-config file. Beside them:
# libweir_policy.a with the rules (needs yaml-cpp) and libweir_fleet.a with the store on Redis (needs OpenSSL).
#
# libweir.a and libweir.so are made of the objects of the core's folders, so nothing is compiled twice. libweir.so
# exports only what weir.map names. Tested by tests/install.sh.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
# Debian has a library folder for each processor. CMake uses it only if the prefix is /usr from the start.
if(CMAKE_INSTALL_LIBDIR STREQUAL "lib" AND CMAKE_LIBRARY_ARCHITECTURE AND EXISTS /etc/debian_version)
  set(CMAKE_INSTALL_LIBDIR "lib/${CMAKE_LIBRARY_ARCHITECTURE}")
endif()

set(core)
set(objects)
foreach(folder weir_limiter weir_store weir_table weir_algorithm weir_base)
  if(TARGET ${folder})
    list(APPEND core ${folder})
    list(APPEND objects $<TARGET_OBJECTS:${folder}>)
  endif()
endforeach()
weir_shareable(${core})
foreach(folder IN LISTS core)
  # No other library replaces our functions, so the compiler may inline them.
  target_compile_options(${folder} PRIVATE -fno-semantic-interposition)
endforeach()

add_library(weir_static STATIC ${objects})
add_library(weir_shared SHARED ${objects})
set(map "${CMAKE_CURRENT_LIST_DIR}/weir.map")
target_link_options(weir_shared PRIVATE "LINKER:--version-script=${map}" LINKER:--no-undefined
  LINKER:-Bsymbolic-functions)
set_target_properties(weir_shared PROPERTIES EXPORT_NAME weir VERSION "${PROJECT_VERSION}" LINK_DEPENDS "${map}"
  SOVERSION "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
foreach(library weir_static weir_shared)
  set_target_properties(${library} PROPERTIES OUTPUT_NAME weir LINKER_LANGUAGE CXX
    ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib" LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
  target_link_libraries(${library} PRIVATE Threads::Threads)
endforeach()

# Rules use symbols that the shared library does not export, so they are linked with the static one.
weir_shareable(weir_policy weir_usage weir_gate)
add_library(weir_rules STATIC $<TARGET_OBJECTS:weir_gate> $<TARGET_OBJECTS:weir_usage>
  $<TARGET_OBJECTS:weir_policy>)
target_link_libraries(weir_rules PUBLIC weir_static yaml-cpp)
set_target_properties(weir_rules PROPERTIES OUTPUT_NAME weir_policy EXPORT_NAME policy LINKER_LANGUAGE CXX
  ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")

find_package(OpenSSL 3 REQUIRED)  # its targets are known only in folders that look for it
weir_shareable(weir_resp weir_net weir_redis weir_fleet)
add_library(weir_fleet_static STATIC $<TARGET_OBJECTS:weir_fleet> $<TARGET_OBJECTS:weir_redis>
  $<TARGET_OBJECTS:weir_net> $<TARGET_OBJECTS:weir_resp>)
target_link_libraries(weir_fleet_static PUBLIC weir_static OpenSSL::SSL)
set_target_properties(weir_fleet_static PROPERTIES OUTPUT_NAME weir_fleet EXPORT_NAME fleet LINKER_LANGUAGE CXX
  ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")

# Everything that the component installs, so that a new build tree can build and install only the library.
add_custom_target(weir_libraries DEPENDS weir_static weir_shared weir_rules weir_fleet_static)

set(place "${CMAKE_INSTALL_LIBDIR}/cmake/weir")
install(TARGETS weir_fleet_static EXPORT weir_fleet ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library)
install(EXPORT weir_fleet NAMESPACE weir:: FILE weir-fleet-targets.cmake DESTINATION "${place}" COMPONENT library)
install(TARGETS weir_rules EXPORT weir_policy ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library)
install(EXPORT weir_policy NAMESPACE weir:: FILE weir-policy-targets.cmake DESTINATION "${place}" COMPONENT library)
install(TARGETS weir_shared weir_static EXPORT weir
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library
  INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(DIRECTORY "${CMAKE_SOURCE_DIR}/include/weir" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT library
  FILES_MATCHING PATTERN "*.h")
install(EXPORT weir NAMESPACE weir:: FILE weir-targets.cmake DESTINATION "${place}" COMPONENT library)
configure_package_config_file("${CMAKE_SOURCE_DIR}/cmake/weir-config.cmake.in"
  "${CMAKE_CURRENT_BINARY_DIR}/weir-config.cmake" INSTALL_DESTINATION "${place}")
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/weir-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/weir-config.cmake" "${CMAKE_CURRENT_BINARY_DIR}/weir-config-version.cmake"
  DESTINATION "${place}" COMPONENT library)

# The path from the folder of weir.pc to the prefix, so that the tree can be moved.
string(REGEX REPLACE "[^/]+" ".." WEIR_FROM_PKGCONFIG "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
foreach(package weir weir-policy weir-fleet)
  configure_file("${CMAKE_SOURCE_DIR}/cmake/${package}.pc.in" "${CMAKE_CURRENT_BINARY_DIR}/${package}.pc" @ONLY)
endforeach()
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/weir.pc" "${CMAKE_CURRENT_BINARY_DIR}/weir-policy.pc"
  "${CMAKE_CURRENT_BINARY_DIR}/weir-fleet.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT library)
