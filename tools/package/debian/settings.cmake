# Settings stand outside the prefix, where `cmake --install` puts nothing: only the package has them.
configure_file(${CMAKE_CURRENT_LIST_DIR}/tally.default ${CPACK_TEMPORARY_DIRECTORY}/etc/default/tally COPYONLY)
