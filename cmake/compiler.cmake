# One place for how Weft is compiled: C++20, warnings as errors, never -march=native (kernels dispatch at run time).
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_library(weft_options INTERFACE)
target_compile_options(weft_options INTERFACE -Wall -Wextra -Wpedantic -Werror -Wshadow=local
                                              $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)
if(WEFT_SANITIZE)
  # GCC's manual: sanitizers make -Wmaybe-uninitialized warn of what is not; the other builds keep it.
  target_compile_options(weft_options INTERFACE -fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer -g
                                                -Wno-maybe-uninitialized)
  if(WEFT_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Asio has fences, which the thread sanitizer does not see; its locks, which it sees, order the same things.
    target_compile_options(weft_options INTERFACE -Wno-tsan)
  endif()
  target_link_options(weft_options INTERFACE -fsanitize=${WEFT_SANITIZE})
endif()

find_program(WEFT_CCACHE ccache)
if(WEFT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${WEFT_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${WEFT_CCACHE})
endif()
