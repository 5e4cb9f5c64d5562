#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "transport/tcp/connector.h"
#include "transport/tcp/tcp.h"
#include "transport/tcp/tcp_endpoint.h"

namespace weft::transport::tcp {

/// All links of one rank over TCP.
class TcpTransport final : public Transport {
 public:
  TcpTransport(TcpOptions options, Self self, Published published, std::vector<Fd> listeners, Fd epoll);
  ~TcpTransport() override;

  [[nodiscard]] std::string_view name() const noexcept override { return "tcp"; }
  [[nodiscard]] std::vector<std::byte> address() const override { return published_.encode(); }
  [[nodiscard]] std::vector<Connected> connect(std::span<const PeerAddress> peers, Deadline deadline) override;
  [[nodiscard]] Endpoint* endpoint(Rank peer) noexcept override;
  [[nodiscard]] Result<Registration> register_memory(std::byte* base, std::uint64_t size_bytes,
                                                     device::MemoryKind kind) noexcept override;
  void release_memory(const Registration& registration) noexcept override;
  [[nodiscard]] std::size_t poll(std::span<Completion> out) noexcept override;
  [[nodiscard]] bool arm(Wake wake) noexcept override;
  void disarm() noexcept override {}
  [[nodiscard]] int event_fd() const noexcept override { return epoll_.get(); }
  void sleep(Nanos limit) noexcept override;

 private:
  struct Link {
    std::unique_ptr<TcpEndpoint> endpoint;
    std::vector<TcpEndpoint::Watch> watched{};  ///< As epoll knows it.
    std::uint32_t sockets_version = 0;
    bool is_due = false;  ///< To be polled in this round.
  };

  void find_due_links() noexcept;
  void look_for_silence_seldom() noexcept;
  /// Tells epoll what this link waits for.
  void sync_watches(std::size_t index) noexcept;

  const TcpOptions options_;
  const Self self_;
  const Published published_;
  const std::vector<Fd> listeners_;
  const Fd epoll_;
  RegionTable regions_;
  Arrivals arrivals_;
  std::vector<Link> links_;
  std::unordered_map<Rank, std::size_t> link_of_;
  std::uint32_t num_polls_ = 0;
  Nanos last_look_{0};
  std::size_t first_link_ = 0;  ///< Turns, so that every peer is once the first.
};

}  // namespace weft::transport::tcp
