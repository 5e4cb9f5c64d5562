#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/settings.h"
#include "bootstrap/session.h"

namespace weft::bootstrap::testing {

using namespace std::chrono_literals;

/// Long enough that only a hang reaches it.
inline Deadline soon() { return Deadline::after(30s); }

using Variables = std::vector<std::pair<std::string, std::string>>;

inline Settings::Lookup lookup_of(Variables variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    for (const auto& [key, value] : variables) {
      if (key == name) return value;
    }
    return std::nullopt;
  };
}

inline Settings settings_of(Variables variables = {}) {
  auto settings = Settings::from(lookup_of(std::move(variables)));
  EXPECT_TRUE(settings) << settings.error().message();
  return *settings;
}

/// A service on loopback and the identities of its ranks.
class Job {
 public:
  explicit Job(std::uint32_t size) : size_(size) {
    auto started = Service::start({"127.0.0.1:0", size, secret_, 30s});
    EXPECT_TRUE(started) << started.error().message();
    service_ = std::move(*started);
  }

  [[nodiscard]] Identity identity(std::uint32_t rank) const {
    Identity identity;
    identity.rank = Rank{rank};
    identity.size = size_;
    identity.address = service_->address();
    identity.secret = secret_;
    identity.source = kUniqueIdSource;  // The service is here: rank 0 starts none.
    return identity;
  }
  [[nodiscard]] Service& service() { return *service_; }
  void end_service() { service_.reset(); }
  [[nodiscard]] const Secret& secret() const { return secret_; }

  /// Runs `body` for every rank on a thread of its own, from joining to leaving.
  void run(const std::function<void(Session&)>& body, const Variables& variables = {}) {
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      threads.emplace_back([&, rank] {
        auto session = join(identity(rank), settings_of(variables));
        ASSERT_TRUE(session) << session.error().message();
        body(**session);
      });
    }
    for (auto& thread : threads) thread.join();
  }

 private:
  std::uint32_t size_;
  Secret secret_ = Secret::random();
  std::unique_ptr<Service> service_;
};

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline bool contains(const Error& error, std::string_view part) {
  return error.message().find(part) != std::string::npos;
}

}  // namespace weft::bootstrap::testing
