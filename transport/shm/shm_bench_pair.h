#pragma once

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "transport/shm/shm_transport.h"

namespace weft::transport::shm {

/// One of the two processes of a bench, and its link to the other.
struct Side {
  std::unique_ptr<Transport> transport;
  Endpoint* link = nullptr;
  std::array<Completion, 64> out;

  void send(std::span<const std::byte> header, std::span<const std::byte> payload) {
    for (;;) {
      auto posted = link->post_message(header, payload);
      WEFT_CHECK(posted.has_value(), "the link works");
      if (*posted == Posted::started) return;
      sched_yield();
    }
  }
  /// Polls until at least one message came; handles each.
  template <class Handle>
  void receive(Handle&& handle) {
    for (;;) {
      const std::size_t count = transport->poll(out);
      for (std::size_t i = 0; i < count; ++i) {
        if (out[i].kind == Completion::Kind::message) handle(out[i].message);
      }
      if (count > 0) return;
    }
  }
  std::vector<std::byte> receive_one() {
    std::vector<std::byte> bytes;
    receive([&](std::span<const std::byte> message) { bytes.assign(message.begin(), message.end()); });
    return bytes;
  }
};

inline void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);
}

/// Runs `first` and `second` in two connected processes; they meet over two pipes.
inline void run_pair(const ShmOptions& options, int first_core, int second_core,
                     const std::function<void(Side&)>& first, const std::function<void(Side&)>& second) {
  std::array<std::array<int, 2>, 2> pipes{};
  for (auto& ends : pipes) WEFT_CHECK(::pipe(ends.data()) == 0, "pipe");
  const pid_t child = ::fork();
  const unsigned own = child == 0 ? 1 : 0;
  pin(own == 0 ? first_core : second_core);
  ShmOptions mine = options;
  mine.rank = Rank{own};
  Side side;
  side.transport = *make_shm_transport(mine);
  const auto address = side.transport->address();
  WEFT_CHECK(::write(pipes[own][1], address.data(), address.size()) == static_cast<ssize_t>(address.size()), "pipe");
  std::vector<std::byte> theirs(address.size());
  WEFT_CHECK(::read(pipes[1 - own][0], theirs.data(), theirs.size()) == static_cast<ssize_t>(theirs.size()), "pipe");
  const std::array peers{PeerAddress{Rank{1 - own}, theirs}};
  const auto connected = side.transport->connect(peers, Deadline::after(std::chrono::seconds(10)));
  if (!connected[0].endpoint) {
    fmt::print("{}\n", connected[0].endpoint.error().message());
    std::exit(1);
  }
  side.link = *connected[0].endpoint;
  (own == 0 ? first : second)(side);
  if (child == 0) std::_Exit(0);
  ::waitpid(child, nullptr, 0);
  for (auto& ends : pipes) {
    ::close(ends[0]);
    ::close(ends[1]);
  }
}

}  // namespace weft::transport::shm
