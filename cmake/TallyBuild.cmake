# Build rules shared by every folder: packages, warnings, sanitizers, and three functions that declare what a folder holds.

option(TALLY_TESTS "build the tests and the benchmark client" ON)
option(TALLY_FUZZ "build the libFuzzer targets (clang)" OFF)
option(TALLY_LTO "optimise programs of the release preset across files when they are linked; OFF links sooner while one works" ON)
set(TALLY_SANITIZE "" CACHE STRING "sanitizers for every target, for example address,undefined")

add_compile_definitions(_GNU_SOURCE TALLY_VERSION="${PROJECT_VERSION}")
# What --version and /version name beside the version: the commit, which is looked up again when another one is checked out or made; -DTALLY_COMMIT= says it where git is not, as in an image.
if(NOT "$CACHE{TALLY_COMMIT}" STREQUAL "")
  set(TALLY_COMMIT $CACHE{TALLY_COMMIT})
else()
  execute_process(COMMAND git rev-parse --short HEAD WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE TALLY_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
execute_process(COMMAND git rev-parse --path-format=absolute --git-path logs/HEAD WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE heads
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT TALLY_COMMIT)
  set(TALLY_COMMIT "no commit")
elseif(EXISTS "${heads}")
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${heads})
endif()
add_compile_options(-Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
                    -Wno-missing-field-initializers -fno-common)
if(TALLY_SANITIZE)
  add_compile_options(-fsanitize=${TALLY_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TALLY_SANITIZE})
else()
  add_compile_options(-fstack-protector-strong) # AddressSanitizer finds what this does, and more
endif()
if(TALLY_SANITIZE MATCHES address AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  set(TALLY_COUNT_STEPS -fsanitize-coverage=trace-pc) # base/steps.h: tests of cost count the libraries' basic blocks
  add_compile_definitions(TALLY_STEPS)
endif()
if(TALLY_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link) # or the fuzzers would be blind in the libraries
endif()
if(NOT TALLY_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_definitions(_FORTIFY_SOURCE=2)
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    # GCC clears a struct of 80 bytes or more by "rep stos", which takes some ten nanoseconds whatever the size. A request clears a dozen of them: stores of 16 bytes take a quarter of the time.
    add_compile_options(-mmemset-strategy=vector_loop:512:noalign,libcall:-1:noalign)
  endif()
  if(TALLY_LTO AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    # What ships and what is measured is optimised across files when it is linked (5 % of a slice's CPU, 7 % of a point read's); tests are linked as they are.
    set(TALLY_WHOLE_PROGRAM -flto=auto)
    set(TALLY_FILE_BY_FILE -fno-lto) # or the linker would do it for whatever is made of such objects
    add_compile_options(-flto=auto -ffat-lto-objects)
    set(CMAKE_AR ${CMAKE_C_COMPILER_AR})
    set(CMAKE_RANLIB ${CMAKE_C_COMPILER_RANLIB})
  endif()
endif()

# tally_whole_program(TARGET): a program that is optimised as a whole in the release preset.
function(tally_whole_program target)
  target_link_options(${target} PRIVATE ${TALLY_WHOLE_PROGRAM})
endfunction()

# tally_file_by_file(TARGET): one that is linked as it is compiled: a test, of which there are many.
function(tally_file_by_file target)
  target_link_options(${target} PRIVATE ${TALLY_FILE_BY_FILE})
endfunction()

# tally_find_packages(): imported targets for what the card names.
function(tally_find_packages)
  foreach(pkg IN ITEMS openssl:openssl lz4:liblz4 snappy:snappy zlib:zlib yaml:yaml-0.1 microhttpd:libmicrohttpd
          gnutls:gnutls yajl:yajl cbor:libcbor gmp:gmp edit:libedit)
    string(REPLACE ":" ";" parts ${pkg})
    list(GET parts 0 name)
    list(GET parts 1 module)
    pkg_check_modules(${name} IMPORTED_TARGET GLOBAL ${module})
    if(NOT ${name}_FOUND)
      find_library(${name}_LIB NAMES ${name} REQUIRED)
      add_library(PkgConfig::${name} INTERFACE IMPORTED GLOBAL)
      target_link_libraries(PkgConfig::${name} INTERFACE ${${name}_LIB})
    endif()
  endforeach()
  find_library(EV_LIB NAMES ev REQUIRED)
  add_library(tally_ev INTERFACE IMPORTED GLOBAL)
  target_link_libraries(tally_ev INTERFACE ${EV_LIB})
  find_program(LEMON NAMES lemon REQUIRED)
  set(LEMON ${LEMON} CACHE FILEPATH "the lemon parser generator" FORCE)
endfunction()

# tally_library(NAME DEPS...): a static library of every .c file of this folder.
function(tally_library name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c)
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARGN})
  target_compile_options(${name} PRIVATE ${TALLY_COUNT_STEPS})
endfunction()

# tally_names_commit(FILES...): only they are compiled again for another commit.
function(tally_names_commit)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_DEFINITIONS "TALLY_COMMIT=\"${TALLY_COMMIT}\"")
endfunction()

# tally_usage(PROGRAM SECTION): its man page and completion for three shells in <build>/share, which tools/docs/usage.py makes of --help=json, and where they are installed.
function(tally_usage program section)
  set(share ${CMAKE_BINARY_DIR}/share)
  file(MAKE_DIRECTORY ${share})
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_custom_command(TARGET ${program} POST_BUILD VERBATIM COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/docs/usage.py $<TARGET_FILE:${program}> ${share})
  install(FILES ${share}/${program}.${section} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
  install(FILES ${share}/${program}.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ${program})
  install(FILES ${share}/_${program} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${share}/${program}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endfunction()
