# cmake -DINPUT=file -DOUTPUT=file.cc -P embed_image.cmake: the bytes of INPUT (none if not given) as kernel_image().
set(bytes "")
if(INPUT)
  file(READ ${INPUT} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
endif()
file(WRITE ${OUTPUT} "#include \"device/cuda/cuda_device.h\"
namespace weft::device::cuda {
namespace {
// One more byte, so that an empty image is an array too; aligned as the driver reads it.
alignas(64) constexpr unsigned char kImage[] = {${bytes}0};
}  // namespace
std::span<const std::byte> kernel_image() noexcept { return std::as_bytes(std::span(kImage, sizeof(kImage) - 1)); }
}  // namespace weft::device::cuda
")
