#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "bootstrap/client.h"
#include "bootstrap/session.h"

namespace weft::bootstrap {

/// A session over a connection that the service has welcomed. Internal: Asio types.
class NetworkSession final : public Session {
 public:
  struct Parts {
    Identity identity;
    std::string local_address;
    std::unique_ptr<Client> client;
    std::unique_ptr<Service> service;  ///< Where rank 0 serves; else nothing.
  };
  explicit NetworkSession(Parts parts) : parts_(std::move(parts)) {}
  /// Leaves in order. Where the service runs in this process, the others get a moment to leave too.
  ~NetworkSession() override;

  [[nodiscard]] Rank rank() const noexcept override { return parts_.identity.rank; }
  [[nodiscard]] std::uint32_t size() const noexcept override { return parts_.identity.size; }
  [[nodiscard]] Group world() const override;
  [[nodiscard]] const Secret& secret() const noexcept override { return parts_.identity.secret; }
  [[nodiscard]] std::string local_address() const override { return parts_.local_address; }

  [[nodiscard]] Result<std::vector<std::vector<std::byte>>> all_gather(const Group& group, std::string_view what,
                                                                       std::span<const std::byte> own,
                                                                       Deadline deadline) override;
  [[nodiscard]] Status barrier(const Group& group, std::string_view what, Deadline deadline) override;
  void pass(const Group& group, std::string_view what, Deadline deadline) override;
  [[nodiscard]] Result<std::uint64_t> agree(const Group& group, std::string_view what, std::uint64_t value,
                                            Deadline deadline) override;

 private:
  [[nodiscard]] Status check(const Group& group, std::string_view what, std::size_t value_size) const;
  Result<std::vector<std::byte>> exchange(const Group& group, Operation operation, std::string_view what,
                                          std::span<const std::byte> value, Deadline deadline);
  /// Sends this rank's part of an exchange; what went wrong is not yet a failure of the session.
  struct Begun {
    ExchangeKey key;
    Status sent;
  };
  Begun begin(const Group& group, Operation operation, std::string_view what, std::span<const std::byte> value,
              Deadline deadline);
  Result<std::vector<std::byte>> await_result(const ExchangeKey& key, std::size_t size_max, Deadline deadline);
  Error fail(const Error& cause);

  Parts parts_;
  std::unordered_map<std::uint64_t, std::uint64_t> sequences_;  ///< Exchanges begun, by group.
  bool is_result_owed_ = false;                                 ///< Of a pass() that was not waited for.
  std::optional<Error> failure_;                                ///< Of the connection: the first cause.
};

/// A session of one rank, without a service. Thread: as Session.
std::unique_ptr<Session> make_lone_session(const Identity& identity, std::string local_address);

/// How long to wait for the service beyond a deadline that the service itself watches: it names who is missing, this
/// side can only say that nothing came.
constexpr Nanos kAnswerGrace = std::chrono::seconds(2);
Deadline with_grace(Deadline deadline);

/// What is left of `deadline`, as it goes over the wire.
std::uint64_t timeout_of(Deadline deadline);

}  // namespace weft::bootstrap
