#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/device/oracle.h"
#include "weft/weft.h"

namespace weft::multi {

enum class Kind : std::uint8_t {
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  gather,
  scatter,
  all_to_all,
};
inline constexpr std::uint32_t kKinds = 8;

/// One collective call of this rank with its buffers, and what it must give.
class Call {
 public:
  struct Shape {
    Kind kind = Kind::all_reduce;
    weft_type_t type = WEFT_F32;
    weft_op_t op = WEFT_SUM;
    std::size_t count = 0;
    std::uint32_t root = 0;
    bool in_place = false;
    bool is_allocated = false;  ///< Buffers from weft_memory_allocate.
  };
  Call(weft_communicator_t* communicator, Shape shape);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  [[nodiscard]] weft_status_t run();
  [[nodiscard]] weft_status_t start(weft_request_t* request);
  /// Ends the process if the result is wrong.
  void check();
  [[nodiscard]] std::string describe() const;

 private:
  [[nodiscard]] device::oracle::Bits value(std::uint32_t rank, std::size_t index) const;
  [[nodiscard]] device::oracle::Bits expected(std::size_t index) const;
  std::byte* allocate(std::size_t size_bytes);

  weft_communicator_t* communicator_;
  Shape shape_;
  std::uint32_t rank_, size_;
  std::size_t input_blocks_ = 1, output_blocks_ = 1;
  std::byte* send_ = nullptr;
  std::byte* receive_ = nullptr;
  std::vector<std::byte*> owned_;
};

}  // namespace weft::multi
