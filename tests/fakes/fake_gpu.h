#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/random.h"
#include "device/device.h"

namespace weft::fakes {

/// A GPU whose memory the CPU cannot touch, for machines without one.
///
/// - A load or store of the CPU in its memory is a SIGSEGV (the caller's mapping is PROT_NONE; the fake works
///   through a second mapping of the same pages).
/// - Work is asynchronous: bytes are read and written by the very is_done(ticket) that answers true, after a seeded
///   number of polls of any tickets, so tickets finish out of order and a missing wait sees or leaves wrong data.
/// - Starting work that conflicts with work in flight, on device or host memory, is a broken promise (it aborts).
///   So are releasing memory in use, and leaving an allocation.
///
/// Thread: any (one lock), so that ranks in threads can share it.
class FakeGpu final : public device::Device {
 public:
  struct Options {
    std::uint64_t seed = 1;
    std::size_t memory_bytes = std::size_t{256} << 20;  ///< Address space; pages come when touched.
    std::uint32_t polls_max = 8;                        ///< Work is ready after 1 to polls_max polls.
  };
  FakeGpu() : FakeGpu(Options{}) {}
  explicit FakeGpu(Options options);
  ~FakeGpu() override;
  FakeGpu(const FakeGpu&) = delete;
  FakeGpu& operator=(const FakeGpu&) = delete;

  std::string_view name() const noexcept override { return "fake_gpu"; }
  device::Ticket copy(std::byte* destination, const std::byte* source, std::size_t size_bytes) noexcept override;
  device::Ticket reduce(std::byte* destination, const std::byte* left, const std::byte* right, std::size_t count,
                        device::DataType type, device::ReduceOp op) noexcept override;
  device::Ticket finish_average(std::byte* values, std::size_t count, device::DataType type,
                                std::uint32_t divisor) noexcept override;
  bool is_done(device::Ticket ticket) noexcept override;
  Result<std::byte*> allocate(std::size_t size_bytes) noexcept override;
  void release(std::byte* memory) noexcept override;
  /// True exactly for bytes of live allocations.
  bool owns(const std::byte* memory) const noexcept override;

  /// Polls until `ticket` is done.
  void wait(device::Ticket ticket) noexcept;
  /// At once, for tests that prepare inputs and look at results. No work on these bytes may be in flight.
  void upload(std::byte* to_device, const void* from_host, std::size_t size_bytes) noexcept;
  void download(void* to_host, const std::byte* from_device, std::size_t size_bytes) noexcept;

  [[nodiscard]] std::size_t num_in_flight() const noexcept;
  [[nodiscard]] std::size_t num_allocations() const noexcept;

 private:
  struct Range {
    std::uintptr_t begin = 0;
    std::size_t size_bytes = 0;
  };
  struct Work {
    enum class Kind : std::uint8_t { copy, reduce, divide } kind = Kind::copy;
    Range written, read_first, read_second;
    std::size_t count = 0;
    device::DataType type = device::DataType::u8;
    device::ReduceOp op = device::ReduceOp::sum;
    std::uint32_t divisor = 1;
    std::uint64_t ready_at_poll = 0;
  };

  device::Ticket start(Work work) noexcept;
  void run(const Work& work) const noexcept;
  /// Where the fake itself may touch `range`; host memory is what it is.
  [[nodiscard]] std::byte* reach(const Range& range) const noexcept;
  [[nodiscard]] std::optional<Range> allocation_of(std::uintptr_t address) const noexcept;
  [[nodiscard]] bool is_in_arena(std::uintptr_t address) const noexcept;
  [[nodiscard]] bool conflicts(const Work& work) const noexcept;

  Options options_;
  std::byte* outside_ = nullptr;  ///< What callers see: PROT_NONE.
  std::byte* inside_ = nullptr;   ///< The same pages, for the fake.
  mutable std::mutex mutex_;
  Random random_;
  std::map<std::uintptr_t, std::size_t> allocations_;  ///< Address outside -> size.
  std::map<std::uint64_t, Work> in_flight_;            ///< By ticket.
  std::uint64_t next_ticket_ = 1;
  std::uint64_t num_polls_ = 0;
};

}  // namespace weft::fakes
