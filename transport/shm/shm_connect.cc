#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "transport/shm/shm_rank.h"

namespace weft::transport::shm {

std::vector<Connected> ShmRank::connect(std::span<const PeerAddress> peers, Deadline deadline) {
  std::vector<Connected> results;
  std::vector<PairHandshake> pairs;
  results.reserve(peers.size());
  pairs.reserve(peers.size());
  for (const PeerAddress& peer : peers) {
    if (Endpoint* known = endpoint(peer.peer)) {
      results.push_back({peer.peer, known});
      continue;
    }
    if (peer.peer == own_.rank) {
      results.push_back({peer.peer, Error{ErrorCode::invalid_argument, "a rank has no link to itself"}});
      continue;
    }
    PairHandshake pair(own_, peer.peer);
    if (Status status = pair.reach(peer.address); !status) {
      results.push_back({peer.peer, status.error().about(peer.peer)});
      continue;
    }
    results.push_back({peer.peer, nullptr});  // To be replaced below.
    pairs.push_back(std::move(pair));
  }
  if (Status status = say_hellos(pairs); !status) {
    for (PairHandshake& pair : pairs) {
      if (!pair.is_settled()) pair.refuse(status.error());
    }
  }
  settle_all(pairs, deadline);
  for (PairHandshake& pair : pairs) {
    const auto entry = std::find_if(results.begin(), results.end(), [&](const Connected& result) {
      return result.peer == pair.peer() && result.endpoint && *result.endpoint == nullptr;
    });
    entry->endpoint = adopt(pair);
  }
  return results;
}

/// Makes a ring for each peer that was reached, all at once, and says hello to each.
Status ShmRank::say_hellos(std::vector<PairHandshake>& pairs) {
  if (pairs.empty()) return {};
  const std::size_t hinted = options_.num_local_ranks > 1 ? options_.num_local_ranks - 1 : 1;
  const std::size_t num_peers = std::max(hinted, links_.size() + pairs.size());
  const RingGeometry geometry = ring_geometry(num_peers);
  const bool is_flagged = num_peers > kDirectPeersMax;
  const std::uint64_t first = file_size_;
  const std::uint64_t new_size = first + pairs.size() * geometry.file_size();
  WEFT_TRY(grow_memory_file(file_.get(), first, new_size));
  file_size_ = new_size;
  std::uint64_t offset = first;
  for (PairHandshake& pair : pairs) {
    auto memory = map_file_mirrored(file_.get(), offset, geometry.file_size(), geometry.bulk_size);
    Status status = memory ? pair.say_hello(std::move(*memory), offset, geometry, is_flagged) : Status(memory.error());
    if (!status) pair.refuse(status.error());
    offset += geometry.file_size();
  }
  return {};
}

void ShmRank::settle_all(std::vector<PairHandshake>& pairs, Deadline deadline) {
  for (std::uint32_t round = 0;; ++round) {
    const bool is_passed = deadline.has_passed();
    std::size_t waiting = 0;
    for (PairHandshake& pair : pairs) {
      if (!pair.is_settled() && !pair.step(is_passed)) ++waiting;
    }
    if (waiting == 0) return;
    // Peers usually come within microseconds of each other, or later by the time that a process takes to start.
    if (round < 50) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(round < 1000 ? 100 : 1000));
    }
  }
}

Result<Endpoint*> ShmRank::adopt(PairHandshake& pair) {
  auto parts = pair.take_result();
  if (!parts) return parts.error();
  auto link = std::make_unique<ShmEndpoint>(std::move(*parts), done_);
  WEFT_TRY(sleeper_.watch(link->process(), link->entry_index()));
  ShmEndpoint* const endpoint = link.get();
  by_entry_[endpoint->entry_index()] = endpoint;
  if (endpoint->is_flagged()) {
    num_flagged_words_ = std::max<std::size_t>(num_flagged_words_, endpoint->entry_index() / 8 + 1);
  } else {
    direct_.push_back(endpoint);
  }
  delivered_.reserve(kPeersMax);
  dead_.reserve(kPeersMax);
  links_.emplace(endpoint->peer(), std::move(link));
  return endpoint;
}

}  // namespace weft::transport::shm
