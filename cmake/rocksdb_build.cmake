# cmake [-DURL=...] [-DGENERATOR=...] -P cmake/rocksdb_build.cmake: builds the RocksDB that is pinned here into build/rocksdb-VERSION (include/, lib/librocksdb.a), for all presets; what has been built
# already stays as it is. RocksDB.cmake has it run when programs are linked with it.
#
# The sums of blocks and of the log are only computed by the processor where the compiler may use what it has for that: on x86 what there is since 2011 (x86-64-v2, PCLMULQDQ), on ARM asked
# when the program starts. Files are compiled sixteen at a time, as RocksDB's own tests compile all of them at once: most of the time goes to its headers. Nothing is built that is not linked.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/rocksdb_pinned.cmake)
if(NOT URL)
  set(URL ${rocksdb_url})
endif()
if(NOT GENERATOR)
  set(GENERATOR Ninja)
endif()

set(archive ${rocksdb_prefix}/rocksdb.tar.gz)
set(source ${rocksdb_prefix}/src/rocksdb_source)
set(build ${rocksdb_prefix}/src/rocksdb_source-build)
set(stamp ${rocksdb_prefix}/built)
cmake_host_system_information(RESULT processor QUERY OS_PLATFORM)
if(processor MATCHES "x86_64|amd64")
  set(portable x86-64-v2)
  set(flags -mpclmul)
else()
  set(portable 1)
endif()
set(how -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS=-ffunction-sections -fdata-sections ${flags}" "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG"
  -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=16 -DPORTABLE=${portable} -DWITH_LZ4=ON -DWITH_GFLAGS=OFF -DWITH_LIBURING=OFF -DWITH_PERF_CONTEXT=OFF -DFAIL_ON_WARNINGS=OFF
  -DROCKSDB_BUILD_SHARED=OFF -DWITH_TESTS=OFF -DWITH_TOOLS=OFF -DWITH_CORE_TOOLS=OFF -DWITH_BENCHMARK_TOOLS=OFF
  -DCMAKE_INSTALL_PREFIX=${rocksdb_prefix} -DCMAKE_INSTALL_LIBDIR=lib)

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(fetch)
  if(EXISTS ${URL})
    file(COPY_FILE ${URL} ${archive})
  else()
    message("RocksDB ${rocksdb_pinned}: ${URL}")
    file(DOWNLOAD ${URL} ${archive} STATUS status)
    list(POP_FRONT status failed)
    if(failed)
      message(FATAL_ERROR "${URL} cannot be had: ${status}. -DTALLY_ROCKSDB_URL= names a mirror or a file")
    endif()
  endif()
  file(SHA256 ${archive} sum)
  if(NOT sum STREQUAL rocksdb_sha256)
    message(FATAL_ERROR "${URL} is not RocksDB ${rocksdb_pinned}: its SHA-256 is ${sum}, not ${rocksdb_sha256}")
  endif()
endfunction()

function(unpack)
  file(REMOVE_RECURSE ${source})
  file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${rocksdb_prefix}/unpacked)
  file(GLOB top ${rocksdb_prefix}/unpacked/*)
  file(RENAME ${top} ${source})
  file(REMOVE_RECURSE ${rocksdb_prefix}/unpacked)
endfunction()

file(MAKE_DIRECTORY ${rocksdb_prefix}/src)
file(LOCK ${rocksdb_prefix}/lock GUARD PROCESS) # of two presets that are built at once
set(recipe "${rocksdb_sha256} ${how}")
if(EXISTS ${stamp})
  file(READ ${stamp} built)
endif()
if(NOT built STREQUAL recipe)
  fetch()
  unpack()
  run(${CMAKE_COMMAND} -S ${source}/rocksdb -B ${build} ${how})
  run(${CMAKE_COMMAND} --build ${build})
  run(${CMAKE_COMMAND} --install ${build})
  file(COPY ${source}/rocksdb/LICENSE.leveldb DESTINATION ${rocksdb_prefix})
  file(WRITE ${stamp} "${recipe}")
endif()
