#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "bootstrap/identity.h"

namespace weft::bootstrap {

/// An ordered set of the job's ranks that exchange with each other. All members hold equal values.
struct Group {
  std::uint64_t id = 0;         ///< Unique in the job; 0 is the world.
  std::vector<Rank> members;    ///< Job ranks in group order.
  std::uint32_t own_index = 0;  ///< Where this process is in `members`.
};

/// This rank's connection to the service where the job's ranks meet.
///
/// Every call is collective over the group: all members call the same operation in the same order, with the same `what`
/// (a phase's name for messages; at most 64 characters). A call returns when every member has contributed.
/// Errors of every call: timeout — naming the members (rank, and host and pid where known) that did not come;
/// peer_failed — a member's process left the job meanwhile, named; mismatch — members called different things (both
/// named); closed. Thread: blocking, one thread at a time.
class Session {
 public:
  virtual ~Session() = default;

  [[nodiscard]] virtual Rank rank() const noexcept = 0;
  [[nodiscard]] virtual std::uint32_t size() const noexcept = 0;
  /// All ranks of the job.
  [[nodiscard]] virtual Group world() const = 0;
  /// The job's secret, from which data connections derive theirs.
  [[nodiscard]] virtual const Secret& secret() const noexcept = 0;
  /// The local address from which this rank reaches the service: the natural one to offer to peers.
  [[nodiscard]] virtual std::string local_address() const = 0;

  /// Every member's bytes (at most 1 MiB each), in group order.
  [[nodiscard]] virtual Result<std::vector<std::vector<std::byte>>> all_gather(const Group& group,
                                                                               std::string_view what,
                                                                               std::span<const std::byte> own,
                                                                               Deadline deadline) = 0;
  [[nodiscard]] virtual Status barrier(const Group& group, std::string_view what, Deadline deadline) = 0;
  /// Says that this rank has come so far, and returns at once; but where the service runs in this process, when all
  /// have said so. A process that serves may end after this: nobody waits any more for an exchange before it. Returns
  /// without an error also if a member left or the deadline passed: no exchange fails for that.
  virtual void pass(const Group& group, std::string_view what, Deadline deadline) = 0;
  /// The bitwise AND of every member's value: with 0/1, whether all agree.
  [[nodiscard]] virtual Result<std::uint64_t> agree(const Group& group, std::string_view what, std::uint64_t value,
                                                    Deadline deadline) = 0;
};

/// The service itself: authenticates ranks, forwards exchanges, notices who left. Runs its own thread.
class Service {
 public:
  struct Options {
    std::string listen_address;  ///< "host:port"; port 0 lets the kernel choose. Listens there only.
    std::uint32_t size = 1;      ///< Ranks of the job.
    Secret secret;
    Nanos join_timeout = std::chrono::minutes(2);
  };
  /// Errors: address_in_use — naming port and, where visible, its owner; not_found — the address is not on this
  /// machine.
  static Result<std::unique_ptr<Service>> start(Options options);
  virtual ~Service() = default;  ///< Stops the thread; members still connected see `closed`.
  /// "host:port" with the real port.
  [[nodiscard]] virtual std::string address() const = 0;
  /// Blocks until every rank has joined and left again, or the deadline passes (`weft bootstrap serve`).
  virtual Status wait_until_done(Deadline deadline) = 0;
};

/// Whether a service of this process has this address. Thread: any.
[[nodiscard]] bool is_served_here(std::string_view address);

/// Joins the job; rank 0 runs the service inside its process unless something answers at the address already.
/// Errors: timeout — the message lists which ranks had joined and which are missing; unauthenticated; mismatch —
/// another size, or the rank is taken (both holders named).
Result<std::unique_ptr<Session>> join(const Identity& identity, const Settings& settings);

/// A job that meets at `service_host` (an interface's address, chosen by WEFT_INTERFACE), and its service running in
/// this process. The other ranks join with join(identity_of(id, rank, size)).
struct Founded {
  UniqueId id;
  std::unique_ptr<Service> service;
};
Result<Founded> found_job(std::uint32_t size, const Settings& settings);
Result<Identity> identity_of(const UniqueId& id, Rank rank, std::uint32_t size);

}  // namespace weft::bootstrap
