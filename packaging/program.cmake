# The program as it is installed: the binary, its man pages and completions (the program prints them), the systemd units
# and the files of /etc as the Debian package has them, and the documentation.
#
# Tested by tests/package.sh.
set(papers)
function(weir_paper file)
  add_custom_command(OUTPUT "${file}" DEPENDS weir COMMENT "Writing ${file}" VERBATIM
    COMMAND sh -c "\"$0\" \"$@\" >\"${file}\"" "$<TARGET_FILE:weir>" ${ARGN})
  set(papers ${papers} "${CMAKE_CURRENT_BINARY_DIR}/${file}" PARENT_SCOPE)
endfunction()
weir_paper(weir.1 manual weir)
weir_paper(weir.yaml.5 manual weir.yaml)
weir_paper(weir.bash completion bash)
weir_paper(_weir completion zsh)
weir_paper(weir.fish completion fish)
add_custom_target(weir_papers ALL DEPENDS ${papers})

# weir_install(FOLDER FILE... [RENAME name])
function(weir_install folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "RENAME" "")
  set(rename)
  if(arg_RENAME)
    set(rename RENAME "${arg_RENAME}")
  endif()
  install(FILES ${arg_UNPARSED_ARGUMENTS} DESTINATION "${folder}" ${rename} COMPONENT program)
endfunction()
set(made "${CMAKE_CURRENT_BINARY_DIR}")
install(TARGETS weir RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT program)
weir_install("${CMAKE_INSTALL_MANDIR}/man1" "${made}/weir.1")
weir_install("${CMAKE_INSTALL_MANDIR}/man5" "${made}/weir.yaml.5")
weir_install("${CMAKE_INSTALL_DATADIR}/bash-completion/completions" "${made}/weir.bash" RENAME weir)
weir_install("${CMAKE_INSTALL_DATADIR}/zsh/site-functions" "${made}/_weir")
weir_install("${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d" "${made}/weir.fish")

file(GLOB docs CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/docs/*.md")
weir_install("${CMAKE_INSTALL_DOCDIR}" ${docs} "${CMAKE_SOURCE_DIR}/CHANGELOG.md")
