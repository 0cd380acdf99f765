# Which RocksDB the programs are linked with: tally_rocksdb, whose version is TALLY_ROCKSDB_VERSION.
#   system  Debian's librocksdb-dev, a shared library; or what ROCKSDB_ROOT names
#   source  the release that rocksdb_pinned.cmake names, built once for all presets and linked statically: what packages and images ship

set(TALLY_ROCKSDB system CACHE STRING "system: Debian's package; source: a pinned release, built here and linked statically")
set_property(CACHE TALLY_ROCKSDB PROPERTY STRINGS system source)
set(TALLY_ROCKSDB_URL "" CACHE STRING "mirror or file to take the pinned release from, of which the SHA-256 must be the same; crates.io when empty")
set(ROCKSDB_ROOT "" CACHE PATH "folder of another RocksDB build (include/, lib/) to take for the system's")
include(rocksdb_pinned)

# tally_rocksdb_version(HEADER RESULT): of rocksdb/version.h, which is C++.
function(tally_rocksdb_version header result)
  file(STRINGS ${header} version REGEX "^#define ROCKSDB_(MAJOR|MINOR|PATCH)")
  string(REGEX REPLACE "#define ROCKSDB_[A-Z]+ +" "" version "${version}")
  string(REPLACE ";" "." version "${version}")
  set(${result} ${version} PARENT_SCOPE)
endfunction()

function(tally_rocksdb_of_system)
  set(only)
  if(ROCKSDB_ROOT)
    set(only PATHS ${ROCKSDB_ROOT} ${ROCKSDB_ROOT}/lib ${ROCKSDB_ROOT}/include NO_DEFAULT_PATH)
    target_include_directories(tally_rocksdb INTERFACE ${ROCKSDB_ROOT}/include)
    target_link_libraries(tally_rocksdb INTERFACE stdc++)
  endif()
  find_library(ROCKSDB_LIB NAMES rocksdb ${only} REQUIRED)
  find_file(ROCKSDB_VERSION_H rocksdb/version.h ${only} REQUIRED)
  target_link_libraries(tally_rocksdb INTERFACE ${ROCKSDB_LIB})
  tally_rocksdb_version(${ROCKSDB_VERSION_H} version)
  set(TALLY_ROCKSDB_VERSION "${version}" PARENT_SCOPE)
endfunction()

function(tally_rocksdb_of_source)
  set(library ${rocksdb_prefix}/lib/librocksdb.a)
  add_custom_command(OUTPUT ${library} USES_TERMINAL COMMENT "building RocksDB ${rocksdb_pinned}"
                     COMMAND ${CMAKE_COMMAND} "-DURL=${TALLY_ROCKSDB_URL}" "-DGENERATOR=${CMAKE_GENERATOR}" -P ${CMAKE_SOURCE_DIR}/cmake/rocksdb_build.cmake
                     DEPENDS ${CMAKE_SOURCE_DIR}/cmake/rocksdb_build.cmake ${CMAKE_SOURCE_DIR}/cmake/rocksdb_pinned.cmake)
  add_custom_target(rocksdb_source DEPENDS ${library})
  add_library(rocksdb_static STATIC IMPORTED GLOBAL) # a library of its own, behind which what it needs is linked, wherever else that stands
  set_target_properties(rocksdb_static PROPERTIES IMPORTED_LOCATION ${library})
  target_link_libraries(rocksdb_static INTERFACE PkgConfig::lz4 stdc++ m Threads::Threads)
  add_dependencies(tally_rocksdb rocksdb_source)
  target_include_directories(tally_rocksdb INTERFACE ${rocksdb_prefix}/include)
  target_link_libraries(tally_rocksdb INTERFACE rocksdb_static)
  target_link_options(tally_rocksdb INTERFACE -Wl,--gc-sections)
  install(FILES ${rocksdb_prefix}/LICENSE.leveldb DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME LICENSE.rocksdb) # of the parts that came from LevelDB; the rest has Tally's
  set(TALLY_ROCKSDB_VERSION ${rocksdb_pinned} PARENT_SCOPE)
endfunction()

function(tally_find_rocksdb)
  add_library(tally_rocksdb INTERFACE)
  if(TALLY_ROCKSDB STREQUAL "source")
    tally_rocksdb_of_source()
  elseif(TALLY_ROCKSDB STREQUAL "system")
    tally_rocksdb_of_system()
  else()
    message(FATAL_ERROR "TALLY_ROCKSDB is system or source, not ${TALLY_ROCKSDB}")
  endif()
  set(TALLY_ROCKSDB_VERSION ${TALLY_ROCKSDB_VERSION} PARENT_SCOPE)
endfunction()

# tally_names_rocksdb(FILES...): they know TALLY_ROCKSDB_VERSION, and TALLY_ROCKSDB_MAJOR as a number; all others are compiled alike for any RocksDB.
function(tally_names_rocksdb)
  string(REGEX MATCH "^[0-9]+" major "${TALLY_ROCKSDB_VERSION}")
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_DEFINITIONS TALLY_ROCKSDB_VERSION="${TALLY_ROCKSDB_VERSION}" TALLY_ROCKSDB_MAJOR=${major})
endfunction()
