#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/device/guarded_buffer.h"
#include "tests/device/oracle.h"
#include "tests/fakes/fake_gpu.h"
#include "tests/sim/sim_group.h"

namespace weft::test {

/// Where a rank's buffers are.
enum class Where : std::uint8_t { plain, allocated, device };

/// Bytes of a simulated rank in any kind of memory; plain ones end at a page that nobody may touch.
class SimBuffer {
 public:
  SimBuffer(SimGroup& group, std::uint32_t rank, fakes::FakeGpu& gpu, Where where, std::size_t size_bytes);
  ~SimBuffer();
  SimBuffer(const SimBuffer&) = delete;
  SimBuffer& operator=(const SimBuffer&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size_bytes() const { return size_bytes_; }
  void write(const std::vector<std::byte>& bytes);
  [[nodiscard]] std::vector<std::byte> read() const;

 private:
  SimMemory& memory_;
  fakes::FakeGpu& gpu_;
  Where where_;
  std::size_t size_bytes_;
  std::unique_ptr<device::GuardedBuffer> guarded_;
  std::byte* data_ = nullptr;
};

/// How one rank makes a call.
struct RankSetup {
  bool in_place = false;  ///< Where this rank has both buffers and the collective knows in place.
  Where input = Where::plain;
  Where output = Where::plain;
};

/// One collective call of all ranks of a SimGroup, with buffers, and what a scalar oracle says of its result.
///
/// Values are small whole numbers, exact in every type and for every order of reduction, and here and there a NaN.
class SimCall {
 public:
  SimCall(SimGroup& group, fakes::FakeGpu& gpu, std::string algorithm, collectives::engine::Call call,
          const collectives::Shape& shape, std::vector<RankSetup> setups, std::uint64_t seed);

  /// Starts the call on one rank. Empty, or what went wrong.
  std::string start(std::uint32_t rank);
  [[nodiscard]] bool is_started(std::uint32_t rank) const { return requests_[rank].has_value(); }
  [[nodiscard]] bool is_finished() const;
  /// Collects the call on all ranks and looks at every byte. Empty, or what is wrong.
  std::string check();
  /// For people.
  [[nodiscard]] std::string describe() const;
  [[nodiscard]] std::string explain() const;

 private:
  struct Buffers {
    std::unique_ptr<SimBuffer> outer;  ///< In place: both.
    std::unique_ptr<SimBuffer> input, output;
    std::size_t input_offset = 0, output_offset = 0;  ///< In `outer`.
    std::vector<std::byte> before;                    ///< `outer` before the call.
    collectives::Contract contract;                   ///< With this rank's own placement.
  };
  [[nodiscard]] device::oracle::Bits input_bits(std::uint32_t rank, std::uint64_t index) const;
  [[nodiscard]] device::oracle::Bits expected_bits(std::uint32_t rank, std::uint64_t index) const;
  [[nodiscard]] std::vector<std::byte> input_bytes(std::uint32_t rank) const;
  void make_buffers(std::uint32_t rank);
  std::string check_rank(std::uint32_t rank);

  SimGroup& group_;
  fakes::FakeGpu& gpu_;
  std::string algorithm_;
  collectives::engine::Call call_;
  collectives::Shape shape_;
  std::vector<RankSetup> setups_;
  std::uint64_t seed_;
  std::vector<Buffers> buffers_;
  std::vector<std::optional<collectives::engine::RequestId>> requests_;
};

}  // namespace weft::test
