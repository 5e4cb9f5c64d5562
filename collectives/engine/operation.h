#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "collectives/engine/message.h"
#include "collectives/engine/program.h"
#include "device/device.h"
#include "transport/memory.h"

namespace weft::collectives::engine {

/// Where a transfer of one slice stands.
enum class Phase : std::uint8_t {
  blocked,            ///< Waits for steps before it.
  posting_data,       ///< Send: payload goes out in messages; `progress_bytes` are out.
  posting_place,      ///< Send: `available`, receive: `ready` or `consumed` is to be posted.
  awaiting_ready,     ///< Send: the receiver has not named the place yet.
  posting_write,      ///< Send: the write is to be posted.
  awaiting_written,   ///< Send: the write is out, its source still in use.
  awaiting_consumed,  ///< Send: the receiver has not read it yet.
  awaiting_data,      ///< Receive: nothing, or not everything, arrived; `progress_bytes` are in.
  awaiting_notice,    ///< Receive: the sender was told the place and has not written yet.
  posting_read,       ///< Receive: the read is to be posted.
  awaiting_read,      ///< Receive: the read is out.
  computing,          ///< A device works on it.
  posting_consumed,   ///< Receive: `consumed` is to be posted.
  complete,
};

/// One step of one slice.
struct StepState {
  std::uint16_t before_left = 0;  ///< Steps before it that are not complete.
  Phase phase = Phase::blocked;
  bool has_place = false;        ///< `place` arrived from the peer.
  bool place_is_shared = false;  ///< It can be loaded directly.
  bool is_staged = false;        ///< The payload comes as a train of messages once the receiver is ready for it.
  std::uint32_t landing = 0;     ///< The notice that announces the peer's write.
  std::uint64_t progress_bytes = 0;
  std::byte* buffer = nullptr;  ///< Landing or bounce buffer of the arena.
  PlaceWire place;
};

/// A slice in flight.
struct SliceSlot {
  std::uint32_t slice = 0;
  std::uint32_t steps_left = 0;  ///< 0: the slot is idle.
};

/// The input, output or scratch of one call.
struct OwnedBuffer {
  std::byte* base = nullptr;
  std::uint64_t size_bytes = 0;
  device::Device* device = nullptr;  ///< Null: the CPU may touch it.
};

/// Bytes to be read or written.
struct Piece {
  std::byte* data = nullptr;
  std::uint64_t size_bytes = 0;
  device::Device* device = nullptr;  ///< Null: the CPU may touch it.
};

/// Most transports that one communicator can have (shm, tcp, verbs, ofi).
inline constexpr std::size_t kTransportsMax = 4;

/// One call in flight: a program and how far each slice has come. Reused; a reused one allocates nothing.
struct Operation {
  const Program* program = nullptr;
  Channel channel = Channel::collective;
  std::uint32_t sequence = 0;
  std::uint32_t index = 0;       ///< In the engine's pool.
  std::uint32_t generation = 0;  ///< Grows with every reuse, so that a stale request is recognised.
  bool in_flight = false;
  bool is_finished = false;  ///< Complete or failed, and not yet collected by its caller.
  std::optional<Error> error;
  std::array<OwnedBuffer, 3> buffers;  ///< By plan::Buffer.
  std::uint32_t next_slice = 0;
  std::uint32_t slices_left = 0;
  std::vector<SliceSlot> slots;
  std::vector<StepState> states;  ///< slot * steps + step.
  /// Registrations of input and output with each transport, made on first use. Released when the operation is complete;
  /// of a failed one only when it is collected, since the transport may still be at work on these bytes.
  std::array<std::array<std::optional<transport::Registration>, kTransportsMax>, 2> registrations;
  Operation* partner = nullptr;  ///< The other half of a send to this rank itself, while a device copies.
  Nanos started{};               ///< Only if traced.

  [[nodiscard]] StepState& state(std::uint32_t slot, std::uint32_t step) noexcept {
    return states[slot * program->steps.size() + step];
  }
  [[nodiscard]] OwnedBuffer& buffer(plan::Buffer which) noexcept { return buffers[static_cast<std::size_t>(which)]; }
  [[nodiscard]] OwnedBuffer& input() noexcept { return buffer(plan::Buffer::input); }
  [[nodiscard]] OwnedBuffer& output() noexcept { return buffer(plan::Buffer::output); }
  [[nodiscard]] OwnedBuffer& scratch() noexcept { return buffer(plan::Buffer::scratch); }

  /// The bytes of `operand` that the slice in `slot` of `step` is about.
  [[nodiscard]] Piece piece(std::uint32_t slot, const ProgramStep& step, const Operand& operand) noexcept {
    const OwnedBuffer& owner = buffer(operand.buffer);
    if (program->slicing.num_slices == 1) [[likely]] {
      return {owner.base + operand.begin_bytes, step.part_elems * program->element_size, owner.device};
    }
    return slice_piece(slot, step, operand);
  }

 private:
  [[nodiscard]] Piece slice_piece(std::uint32_t slot, const ProgramStep& step, const Operand& operand) noexcept;
};

}  // namespace weft::collectives::engine
