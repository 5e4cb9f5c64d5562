#include <utility>

#include "bootstrap/network_session.h"

namespace weft::bootstrap {
namespace {

/// The only rank of its job: everybody has contributed as soon as it calls.
class LoneSession final : public Session {
 public:
  LoneSession(const Secret& secret, std::string local_address)
      : secret_(secret), local_address_(std::move(local_address)) {}

  [[nodiscard]] Rank rank() const noexcept override { return Rank{0}; }
  [[nodiscard]] std::uint32_t size() const noexcept override { return 1; }
  [[nodiscard]] Group world() const override { return Group{0, {Rank{0}}, 0}; }
  [[nodiscard]] const Secret& secret() const noexcept override { return secret_; }
  [[nodiscard]] std::string local_address() const override { return local_address_; }

  [[nodiscard]] Result<std::vector<std::vector<std::byte>>> all_gather(const Group&, std::string_view,
                                                                       std::span<const std::byte> own,
                                                                       Deadline) override {
    return std::vector<std::vector<std::byte>>{{own.begin(), own.end()}};
  }
  [[nodiscard]] Status barrier(const Group&, std::string_view, Deadline) override { return {}; }
  void pass(const Group&, std::string_view, Deadline) override {}
  [[nodiscard]] Result<std::uint64_t> agree(const Group&, std::string_view, std::uint64_t value, Deadline) override {
    return value;
  }

 private:
  Secret secret_;
  std::string local_address_;
};

}  // namespace

std::unique_ptr<Session> make_lone_session(const Identity& identity, std::string local_address) {
  return std::make_unique<LoneSession>(identity.secret, std::move(local_address));
}

}  // namespace weft::bootstrap
