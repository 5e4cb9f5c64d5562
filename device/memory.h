#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft::device {

/// Where bytes live, which decides who may touch them.
enum class MemoryKind : std::uint8_t {
  host,    ///< Ordinary memory of this process: the CPU may touch it.
  shared,  ///< Host memory that same-host peers can map (weft_memory_allocate): the CPU may touch it.
  device,  ///< Memory of a GPU: only its Device may touch it.
};

std::string_view name_of(MemoryKind kind) noexcept;

/// True where loads and stores of the CPU are allowed.
constexpr bool is_cpu_accessible(MemoryKind kind) noexcept { return kind != MemoryKind::device; }

}  // namespace weft::device
