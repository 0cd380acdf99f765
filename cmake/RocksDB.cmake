# Which RocksDB the programs are linked with: tally_rocksdb; they and the engine know its version as TALLY_ROCKSDB_VERSION.
#   system  Debian's librocksdb-dev, a shared library; or what ROCKSDB_ROOT names
#   source  the release pinned below, built here once for all presets and linked statically: what packages and images ship

set(TALLY_ROCKSDB system CACHE STRING "system: Debian's package; source: a pinned release, built here and linked statically")
set_property(CACHE TALLY_ROCKSDB PROPERTY STRINGS system source)
set(ROCKSDB_ROOT "" CACHE PATH "folder of another RocksDB build (include/, lib/) to take for the system's")

# crates.io keeps each release for good, as one archive with the whole source; a mirror or a file may be named, of which the sum must be the same.
set(rocksdb_pinned 11.8.1)
set(TALLY_ROCKSDB_URL "https://static.crates.io/crates/librocksdb-sys/librocksdb-sys-0.19.0+${rocksdb_pinned}.crate" CACHE STRING "where the source of RocksDB is taken from: URL or file")
set(rocksdb_sha256 4f45e86edad8e88efe97dbf384b4e48e1ff0f111eabf154c7b09d7a1e5fb573c)

# tally_rocksdb_version(HEADER RESULT): of rocksdb/version.h.
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

# The sums of blocks and of the log are only computed by the processor where the compiler may use what it has for that: on x86 what there is since 2011, on ARM asked when
# the program starts. Files are compiled sixteen at a time, as RocksDB's own tests compile all of them at once: a third of the time, most of which goes to its headers.
function(tally_rocksdb_of_source)
  enable_language(CXX)
  include(ExternalProject)
  set(prefix ${CMAKE_SOURCE_DIR}/build/rocksdb-${rocksdb_pinned})
  set(library ${prefix}/lib/librocksdb.a)
  set(portable 1)
  set(flags "-ffunction-sections -fdata-sections")
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64")
    set(portable x86-64-v2)
    string(APPEND flags " -mpclmul")
  endif()
  ExternalProject_Add(rocksdb_source
    PREFIX ${prefix} URL ${TALLY_ROCKSDB_URL} URL_HASH SHA256=${rocksdb_sha256}
    DOWNLOAD_NAME rocksdb-${rocksdb_pinned}.tar.gz DOWNLOAD_EXTRACT_TIMESTAMP OFF
    SOURCE_SUBDIR rocksdb
    CMAKE_GENERATOR ${CMAKE_GENERATOR}
    CMAKE_ARGS -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=${prefix} -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DCMAKE_CXX_FLAGS=${flags}
               "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG" -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=16
               -DPORTABLE=${portable} -DWITH_LZ4=ON -DWITH_GFLAGS=OFF -DWITH_LIBURING=OFF -DWITH_PERF_CONTEXT=OFF -DFAIL_ON_WARNINGS=OFF
               -DROCKSDB_BUILD_SHARED=OFF -DWITH_TESTS=OFF -DWITH_TOOLS=OFF -DWITH_CORE_TOOLS=OFF -DWITH_BENCHMARK_TOOLS=OFF
    BUILD_BYPRODUCTS ${library})
  file(MAKE_DIRECTORY ${prefix}/include) # which is filled when it is built
  add_dependencies(tally_rocksdb rocksdb_source)
  target_include_directories(tally_rocksdb INTERFACE ${prefix}/include)
  target_link_libraries(tally_rocksdb INTERFACE ${library} PkgConfig::lz4 stdc++ m Threads::Threads)
  target_link_options(tally_rocksdb INTERFACE -Wl,--gc-sections)
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
  string(REGEX MATCH "^[0-9]+" major "${TALLY_ROCKSDB_VERSION}")
  target_compile_definitions(tally_rocksdb INTERFACE TALLY_ROCKSDB_VERSION="${TALLY_ROCKSDB_VERSION}" TALLY_ROCKSDB_MAJOR=${major})
endfunction()
