#include "tests/contract/contract_backends.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace weft::transport::contract {

std::span<std::byte> Rig::allocate(Rank, std::size_t size_bytes, device::MemoryKind) {
  memory_.push_back(std::make_unique<std::byte[]>(size_bytes));
  return {memory_.back().get(), size_bytes};
}

ThreadedRig::ThreadedRig(std::uint32_t ranks, const Make& make) {
  for (std::uint32_t rank = 0; rank < ranks; ++rank) transports_.push_back(make(Rank{rank}));
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([this, rank, ranks] {
      std::vector<PeerAddress> peers;
      for (std::uint32_t peer = 0; peer < ranks; ++peer) {
        if (peer != rank) peers.push_back({Rank{peer}, transports_[peer]->address()});
      }
      const auto settled = transports_[rank]->connect(peers, Deadline::after(std::chrono::seconds(20)));
      EXPECT_EQ(settled.size(), peers.size());
      for (const Connected& one : settled) {
        EXPECT_TRUE(one.endpoint) << one.endpoint.error().message();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed) {
  Random random(seed);
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    const std::uint64_t word = random.next();
    std::memcpy(bytes.data() + at, &word, 8);
  }
  const std::uint64_t word = random.next();
  if (at < bytes.size()) std::memcpy(bytes.data() + at, &word, bytes.size() - at);
}

std::vector<std::byte> pattern(std::uint64_t seed, std::size_t size_bytes) {
  std::vector<std::byte> bytes(size_bytes);
  fill_pattern(bytes, seed);
  return bytes;
}

bool has_pattern(std::span<const std::byte> bytes, std::uint64_t seed) {
  return std::ranges::equal(bytes, pattern(seed, bytes.size()));
}

void TransportContract::start(std::uint32_t ranks) {
  TearDown();  // Holds the old rig to its promises first.
  blocks_.clear();
  open_.clear();
  log_.clear();
  dead_.clear();
  on_seen_ = {};
  rig_.reset();
  ranks_ = ranks;
  rig_ = GetParam().make(ranks);
  ASSERT_FALSE(HasFailure()) << "the ranks of the rig did not connect";
}

void TransportContract::TearDown() {
  if (!rig_ || HasFatalFailure()) return;
  // Every token of a link that did not fail is polled exactly once; poll() has checked "at most once".
  const auto is_lost = [&](const std::pair<Rank, Rank>& ends) {
    return dead_.contains(ends.first) || dead_.contains(ends.second) || link(ends.first, ends.second).failure();
  };
  drive_until([&] { return std::ranges::all_of(open_, [&](const auto& entry) { return is_lost(entry.second); }); });
  for (const auto& [rank, block] : blocks_) {
    if (!dead_.contains(rank)) transport(rank).release_memory(block->registration);
  }
}

Endpoint& TransportContract::link(Rank from, Rank to) {
  Endpoint* found = transport(from).endpoint(to);
  if (found == nullptr) {
    ADD_FAILURE() << "rank " << from.value() << " has no endpoint for rank " << to.value();
    std::abort();
  }
  return *found;
}

void TransportContract::kill(Rank rank) {
  dead_.insert(rank);
  rig_->kill(rank);
}

void TransportContract::poll(Rank rank) {
  std::array<Completion, 16> out;
  const std::size_t room = 1 + random_.below(out.size());
  const std::size_t got = transport(rank).poll(std::span(out).first(room));
  ASSERT_LE(got, room);
  for (const Completion& done : std::span(out).first(got)) {
    if (done.kind == Completion::Kind::written || done.kind == Completion::Kind::read) {
      const auto found = open_.find(static_cast<std::uint64_t>(done.token));
      ASSERT_TRUE(found != open_.end()) << "a token was polled twice or never posted";
      EXPECT_EQ(found->second, std::pair(rank, done.peer));
      open_.erase(found);
    }
    if (on_seen_) on_seen_(rank, done);
    log_[rank].push_back({done.kind, done.peer, done.notice, done.token, {done.message.begin(), done.message.end()}});
  }
}

void TransportContract::drive_until(const std::function<bool()>& is_done) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(20));
  while (!is_done()) {
    ASSERT_FALSE(deadline.has_passed()) << "it did not happen in 20 s";
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      if (!dead_.contains(Rank{rank})) poll(Rank{rank});
      if (HasFatalFailure()) return;
    }
    rig_->progress();
  }
}

void TransportContract::drive_for(Nanos real_time) {
  const Deadline deadline = Deadline::after(real_time);
  drive_until([&] { return deadline.has_passed(); });
}

std::optional<ErrorCode> TransportContract::post(Rank from, Rank to,
                                                 const std::function<Result<Posted>(Endpoint&, Token)>& call,
                                                 bool has_token) {
  std::optional<ErrorCode> error;
  const std::uint64_t token = ++last_token_;
  drive_until([&] {
    // The token counts from before the call: its Completion may be there as soon as the call returns.
    const Result<Posted> posted = call(link(from, to), Token{token});
    if (!posted) error = posted.error().code();
    if (posted && *posted == Posted::again) return false;
    if (posted && has_token) open_[token] = {from, to};
    return true;
  });
  return error;
}

std::optional<ErrorCode> TransportContract::send(Rank from, Rank to, std::span<const std::byte> header,
                                                 std::span<const std::byte> payload) {
  return post(
      from, to, [&](Endpoint& endpoint, Token) { return endpoint.post_message(header, payload); }, false);
}

std::optional<ErrorCode> TransportContract::write(Rank from, Rank to, LocalSlice source, RemoteSlice destination,
                                                  std::optional<std::uint32_t> notice) {
  return post(
      from, to,
      [&](Endpoint& endpoint, Token token) { return endpoint.post_write(source, destination, notice, token); }, true);
}

std::optional<ErrorCode> TransportContract::read(Rank from, Rank to, LocalSlice destination, RemoteSlice source) {
  return post(
      from, to, [&](Endpoint& endpoint, Token token) { return endpoint.post_read(destination, source, token); }, true);
}

const TransportContract::Block& TransportContract::block(Rank rank, std::size_t size_bytes, device::MemoryKind kind) {
  auto made = std::make_unique<Block>();
  made->bytes = rig_->allocate(rank, size_bytes, kind);
  auto registration = transport(rank).register_memory(made->bytes.data(), size_bytes, kind);
  if (!registration) {
    ADD_FAILURE() << registration.error().message();
    std::abort();
  }
  made->registration = *registration;
  blocks_.emplace_back(rank, std::move(made));
  return *blocks_.back().second;
}

std::size_t TransportContract::count(Rank rank, Completion::Kind kind) const {
  const auto found = log_.find(rank);
  if (found == log_.end()) return 0;
  return static_cast<std::size_t>(std::ranges::count(found->second, kind, &Seen::kind));
}

bool TransportContract::has_notice(Rank rank, std::uint32_t notice) const {
  const auto found = log_.find(rank);
  return found != log_.end() && std::ranges::any_of(found->second, [&](const Seen& seen) {
           return seen.kind == Completion::Kind::notice && seen.notice == notice;
         });
}

std::size_t TransportContract::tokens_open() const { return open_.size(); }

}  // namespace weft::transport::contract
