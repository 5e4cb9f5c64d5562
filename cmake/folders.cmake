# A folder of the house is one static library, weft_<folder>, of all its sources but tests and benches.
function(weft_folder name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${name}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cc$")
  list(FILTER sources EXCLUDE REGEX "/c_abi/")
  if(NOT sources)
    file(WRITE ${PROJECT_BINARY_DIR}/empty_${name}.cc "")
    set(sources ${PROJECT_BINARY_DIR}/empty_${name}.cc)
  endif()
  add_library(weft_${name} STATIC ${sources})
  target_include_directories(weft_${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(weft_${name} ${ARGN} PRIVATE weft_options Threads::Threads)
endfunction()

# libweft.so: the C ABI over everything; only WEFT_API symbols leave it.
function(weft_library)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/collectives/c_abi/*.cc)
  if(NOT sources)
    return()
  endif()
  add_library(weft SHARED ${sources})
  target_include_directories(weft PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>
                             PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(weft PRIVATE weft_options weft_collectives)
  target_link_options(weft PRIVATE -Wl,--exclude-libs,ALL -Wl,--no-undefined)
  target_compile_features(weft PUBLIC cxx_std_20)
  set_target_properties(weft PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0)
  add_library(weft::weft ALIAS weft)
endfunction()

# The parts of the `weft` command (weft_tools: everything under tools/ but main.cc, so that tests can link them), and the
# command itself.
function(weft_tools)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/*.cc)
  set(main ${PROJECT_SOURCE_DIR}/tools/main.cc)
  list(FIND sources ${main} main_index)
  list(REMOVE_ITEM sources ${main})
  if(sources)
    add_library(weft_tools STATIC ${sources})
    target_include_directories(weft_tools PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(weft_tools PUBLIC $<TARGET_NAME_IF_EXISTS:weft> weft_collectives CLI11::CLI11
                          Boost::headers PRIVATE weft_options)
    # As of the last configuration; "unknown" outside of a git checkout.
    execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} describe --always --dirty --tags OUTPUT_VARIABLE weft_commit
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE git_failed)
    if(NOT git_failed)
      set_source_files_properties(${PROJECT_SOURCE_DIR}/tools/machine/version.cc PROPERTIES
                                  COMPILE_DEFINITIONS WEFT_COMMIT="${weft_commit}")
    endif()
  endif()
  if(main_index EQUAL -1 OR NOT TARGET weft)
    return()
  endif()
  add_executable(weft_command ${main})
  set_target_properties(weft_command PROPERTIES OUTPUT_NAME weft RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  target_link_libraries(weft_command PRIVATE weft_options weft_tools)
endfunction()

# Micro benches: one executable per *_bench.cc, next to what it measures or under bench/.
function(weft_benches)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/*_bench.cc)
  list(FILTER sources EXCLUDE REGEX "/build/")
  foreach(source IN LISTS sources)
    get_filename_component(stem ${source} NAME_WE)
    add_executable(${stem} ${source})
    set_target_properties(${stem} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
    target_link_libraries(${stem} PRIVATE weft_options weft_collectives benchmark::benchmark)
  endforeach()
endfunction()
