# The GPU kernels, embedded as bytes into weft_device. Without nvcc the image is empty: the same library then reduces
# device memory through the host. The CUDA driver is loaded at run time either way.
find_program(WEFT_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin /usr/local/cuda/bin)
option(WEFT_CUDA_KERNELS "Compile the GPU kernels if nvcc is found" ON)
set(cuda_image ${PROJECT_BINARY_DIR}/cuda/kernel_image.cc)
if(WEFT_CUDA_KERNELS AND WEFT_NVCC)
  set(cuda_fatbin ${PROJECT_BINARY_DIR}/cuda/kernels.fatbin)
  # Machine code for what runs most, and portable code that the driver compiles for everything newer.
  add_custom_command(
    OUTPUT ${cuda_image}
    COMMAND ${WEFT_NVCC} -std=c++17 -O3 --fmad=false -fatbin -gencode arch=compute_80,code=sm_80
            -gencode arch=compute_90,code=sm_90 -gencode arch=compute_80,code=compute_80
            -o ${cuda_fatbin} ${PROJECT_SOURCE_DIR}/device/cuda/kernels.cu
    COMMAND ${CMAKE_COMMAND} -DINPUT=${cuda_fatbin} -DOUTPUT=${cuda_image} -P ${PROJECT_SOURCE_DIR}/cmake/embed_image.cmake
    DEPENDS ${PROJECT_SOURCE_DIR}/device/cuda/kernels.cu ${PROJECT_SOURCE_DIR}/cmake/embed_image.cmake
    COMMENT "Compiling the GPU kernels" VERBATIM)
else()
  message(STATUS "GPU kernels: not compiled (nvcc not found or WEFT_CUDA_KERNELS=OFF)")
  execute_process(COMMAND ${CMAKE_COMMAND} -DOUTPUT=${cuda_image} -P ${PROJECT_SOURCE_DIR}/cmake/embed_image.cmake)
endif()
target_sources(weft_device PRIVATE ${cuda_image})
target_link_libraries(weft_device PRIVATE ${CMAKE_DL_LIBS})
