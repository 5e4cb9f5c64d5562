#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "transport/transport.h"

namespace weft::transport::contract {

/// N ranks of one transport in this process, connected with each other.
class Rig {
 public:
  virtual ~Rig() = default;
  [[nodiscard]] virtual Transport& transport(Rank rank) = 0;
  /// Lets time pass where a transport does nothing by itself (sim).
  virtual void progress() {}
  /// The rank vanishes without a close: a transport that is destroyed with open links breaks them.
  virtual void kill(Rank rank) = 0;
  /// Memory of the kind for `rank`; lives as long as the rig.
  [[nodiscard]] virtual std::span<std::byte> allocate(Rank rank, std::size_t size_bytes, device::MemoryKind kind);

 private:
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

/// A rig of transports whose connect() blocks: each rank connects in its own thread.
class ThreadedRig : public Rig {
 public:
  using Make = std::function<std::unique_ptr<Transport>(Rank)>;
  ThreadedRig(std::uint32_t ranks, const Make& make);
  [[nodiscard]] Transport& transport(Rank rank) override { return *transports_[rank.index()]; }
  void kill(Rank rank) override { transports_[rank.index()].reset(); }

 protected:
  std::vector<std::unique_ptr<Transport>> transports_;
};

/// What a backend adds to run the whole suite:
///   INSTANTIATE_TEST_SUITE_P(Tcp, TransportContract, testing::Values(Backend{"tcp", make_rig}), name_of_backend);
struct Backend {
  std::string name;
  std::function<std::unique_ptr<Rig>(std::uint32_t ranks)> make;
  /// Each rank may be driven by its own thread, and sleeps in real time. Not so in the simulation.
  bool has_threads = true;
};

inline std::ostream& operator<<(std::ostream& out, const Backend& backend) { return out << backend.name; }
inline std::string name_of_backend(const testing::TestParamInfo<Backend>& info) { return info.param.name; }

/// Drives a rig in one thread, records what every rank polls, and holds the transport to "each token exactly once".
class TransportContract : public testing::TestWithParam<Backend> {
 public:
  static constexpr Rank kA{0};
  static constexpr Rank kB{1};

  /// A Completion with its message copied.
  struct Seen {
    Completion::Kind kind;
    Rank peer;
    std::uint32_t notice;
    Token token;
    std::vector<std::byte> message;
  };
  using Log = std::vector<Seen>;

 protected:
  void SetUp() override { start(2); }
  void TearDown() override;
  /// Replaces the rig, with what belongs to it, by one of so many ranks.
  void start(std::uint32_t ranks);

  [[nodiscard]] Transport& transport(Rank rank) { return rig_->transport(rank); }
  [[nodiscard]] Endpoint& link(Rank from, Rank to);
  [[nodiscard]] const Capabilities& capabilities() { return link(kA, kB).capabilities(); }
  /// The rank is gone from now on.
  void kill(Rank rank);

  /// Polls one rank once and records.
  void poll(Rank rank);
  /// Polls all living ranks until `is_done`; a failure of the test after 20 s.
  void drive_until(const std::function<bool()>& is_done);
  /// Polls for a while in which nothing is expected.
  void drive_for(Nanos real_time);

  /// Post until it is taken; the error's code otherwise.
  std::optional<ErrorCode> send(Rank from, Rank to, std::span<const std::byte> header,
                                std::span<const std::byte> payload = {});
  std::optional<ErrorCode> write(Rank from, Rank to, LocalSlice source, RemoteSlice destination,
                                 std::optional<std::uint32_t> notice = {});
  std::optional<ErrorCode> read(Rank from, Rank to, LocalSlice destination, RemoteSlice source);

  /// Registered memory of a rank, released at the end of the test.
  struct Block {
    std::span<std::byte> bytes;
    Registration registration;
    [[nodiscard]] LocalSlice local(std::uint64_t offset, std::uint64_t size) const {
      return {&registration, offset, size};
    }
    [[nodiscard]] RemoteSlice remote(std::uint64_t offset, std::uint64_t size) const {
      return {registration.key, offset, size};
    }
  };
  const Block& block(Rank rank, std::size_t size_bytes, device::MemoryKind kind = device::MemoryKind::host);

  [[nodiscard]] std::size_t count(Rank rank, Completion::Kind kind) const;
  [[nodiscard]] bool has_notice(Rank rank, std::uint32_t notice) const;
  [[nodiscard]] std::size_t tokens_open() const;

  std::unique_ptr<Rig> rig_;
  std::uint32_t ranks_ = 0;
  std::map<Rank, Log> log_;
  /// Called for each Completion before it is recorded, while the polled state is fresh.
  std::function<void(Rank, const Completion&)> on_seen_;
  std::set<Rank> dead_;

 private:
  std::optional<ErrorCode> post(Rank from, Rank to, const std::function<Result<Posted>(Endpoint&, Token)>& call,
                                bool has_token);

  Random random_{42};
  std::uint64_t last_token_ = 0;
  std::map<std::uint64_t, std::pair<Rank, Rank>> open_;  ///< Tokens that were posted and not polled: from, to.
  std::vector<std::pair<Rank, std::unique_ptr<Block>>> blocks_;
};

/// Bytes that differ between seeds and positions.
std::vector<std::byte> pattern(std::uint64_t seed, std::size_t size_bytes);
void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed);
bool has_pattern(std::span<const std::byte> bytes, std::uint64_t seed);

}  // namespace weft::transport::contract
