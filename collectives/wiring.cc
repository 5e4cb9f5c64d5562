#include "collectives/wiring.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/cores.h"
#include "base/log.h"
#include "base/text.h"
#include "base/wire.h"
#include "collectives/make_transport.h"

namespace weft::collectives {
namespace {

using Blobs = std::vector<std::vector<std::byte>>;

/// Settings that all ranks of a group must share, as the text that is compared.
std::string common_settings(const Settings& settings) {
  std::string text;
  for (const Setting id : {Setting::transports, Setting::eager_limit, Setting::slice_size, Setting::slices_in_flight,
                           Setting::algorithm}) {
    text += fmt::format("{}={} ", setting_specs()[static_cast<std::size_t>(id)].name, settings.text(id));
  }
  return text;
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = trimmed(std::string_view{text}.substr(begin, end - begin));
    if (!part.empty()) parts.emplace_back(part);
    begin = end + 1;
  }
  return parts;
}

/// One group being connected: the steps share what they learnt.
class Connector {
 public:
  Connector(bootstrap::Session& session, const bootstrap::Group& group, const Settings& settings)
      : session_(session),
        group_(group),
        settings_(settings),
        deadline_(Deadline::after(settings.duration(Setting::connect_timeout))),
        size_(static_cast<std::uint32_t>(group.members.size())),
        own_(group.own_index) {}

  Result<Wiring> run() {
    WEFT_TRY(introduce());
    wiring_.links.resize(size_);
    wiring_.reports.resize(size_);
    proven_.assign(size_, std::vector<bool>(size_, false));
    for (std::uint32_t rank = 0; rank < size_; ++rank) wiring_.links[rank].name = describe(rank);
    wiring_.reports[own_].transport = "self";
    const std::vector<std::string> names = split_list(settings_.text(Setting::transports));
    for (const std::string& name : names) {
      if (name != "shm" && name != "tcp") {
        return Error{ErrorCode::invalid_argument, fmt::format("WEFT_TRANSPORTS names \"{}\"", name),
                     "This build has: shm, tcp."};
      }
      WEFT_TRY(try_transport(name));
    }
    WEFT_TRY(check_complete());
    find_shape();
    judge();
    return std::move(wiring_);
  }

 private:
  [[nodiscard]] std::string describe(std::uint32_t rank) const {
    return fmt::format("rank {} (host {}, pid {})", rank, wiring_.ranks[rank].host, wiring_.ranks[rank].pid);
  }

  Status introduce() {
    const std::vector<std::byte> own =
        encode({own_record(settings_.text(Setting::host_id)), common_settings(settings_)});
    WEFT_TRY_ASSIGN(const Blobs blobs, session_.all_gather(group_, "introduction", own, deadline_));
    std::vector<std::string> commons;
    for (const auto& blob : blobs) {
      WEFT_TRY_ASSIGN(Introduction introduced, decode_introduction(blob));
      wiring_.ranks.push_back(std::move(introduced.record));
      commons.push_back(std::move(introduced.common));
    }
    for (std::uint32_t rank = 1; rank < size_; ++rank) {
      if (commons[rank] == commons[0]) continue;
      return Error{ErrorCode::mismatch,
                   fmt::format("{} has {}but {} has {}", describe(0), commons[0], describe(rank), commons[rank]),
                   "These settings must be equal on all ranks."};
    }
    return {};
  }

  /// Ranks with which `name` makes sense: without a connection so far and, for shm, with a chance to share memory.
  std::vector<std::uint32_t> candidates(const std::string& name) {
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      if (rank == own_ || wiring_.links[rank].endpoint != nullptr) continue;
      if (name == "shm") {
        const RankRecord& own = wiring_.ranks[own_];
        const RankRecord& other = wiring_.ranks[rank];
        if (own.host_id != other.host_id) {
          wiring_.reports[rank].not_taken.push_back(
              fmt::format("shm: WEFT_HOST_ID is \"{}\" here and \"{}\" there", own.host_id, other.host_id));
          continue;
        }
        if (own.memory_domain != other.memory_domain) {
          wiring_.reports[rank].not_taken.push_back(fmt::format("shm: kept apart by name spaces ({} here, {} there)",
                                                                own.memory_domain, other.memory_domain));
          continue;
        }
        if (own.boot_id != other.boot_id) {
          wiring_.reports[rank].not_taken.emplace_back("shm: another machine (its kernel was booted at another time)");
          continue;
        }
      }
      ranks.push_back(rank);
    }
    return ranks;
  }

  /// All ranks take part in every exchange, also those that have nothing to connect.
  Status try_transport(const std::string& name) {
    const std::vector<std::uint32_t> wanted = candidates(name);
    WEFT_TRY_ASSIGN(const std::uint64_t nobody_wants,
                    session_.agree(group_, name + " wanted", wanted.empty() ? 1 : 0, deadline_));
    if (nobody_wants != 0) return {};

    std::unique_ptr<transport::Transport> made;
    ByteWriter offer;
    std::string why_not;
    if (!wanted.empty()) {
      auto result = make_transport(name, wanted.size(), session_, group_, settings_);
      if (result) {
        made = std::move(*result);
      } else {
        why_not = result.error().message();
      }
    }
    const std::vector<std::byte> address = made ? made->address() : std::vector<std::byte>{};
    offer.number(std::uint8_t{made != nullptr}).blob(address).text(why_not);
    WEFT_TRY_ASSIGN(const Blobs offers, session_.all_gather(group_, name + " address", offer.bytes(), deadline_));

    std::vector<transport::PeerAddress> peers;
    for (const std::uint32_t rank : wanted) {
      ByteReader reader(offers[rank]);
      const bool is_offered = reader.number<std::uint8_t>() != 0;
      const auto blob = reader.blob();
      const std::string reason = reader.text();
      WEFT_TRY(reader.finish("a transport's address"));
      if (made && is_offered) {
        peers.push_back({Rank{rank}, {blob.begin(), blob.end()}});
      } else {
        const std::string text = made ? fmt::format("{} there: {}", name, reason.empty() ? "not wanted" : reason)
                                      : fmt::format("{} here: {}", name, why_not);
        wiring_.reports[rank].not_taken.push_back(text);
      }
    }
    std::vector<transport::Connected> connected;
    if (made) connected = made->connect(peers, deadline_);
    return settle(name, std::move(made), connected);
  }

  /// A pair takes the transport if both ends say that it works.
  Status settle(const std::string& name, std::unique_ptr<transport::Transport> made,
                const std::vector<transport::Connected>& connected) {
    ByteWriter verdict;
    std::vector<std::string> reasons(size_);
    std::vector<std::uint8_t> works(size_, 0);
    for (const transport::Connected& entry : connected) {
      if (entry.endpoint) {
        works[entry.peer.index()] = 1;
      } else {
        reasons[entry.peer.index()] = entry.endpoint.error().message();
      }
    }
    for (std::uint32_t rank = 0; rank < size_; ++rank) verdict.number(works[rank]).text(reasons[rank]);
    WEFT_TRY_ASSIGN(const Blobs verdicts, session_.all_gather(group_, name + " verdict", verdict.bytes(), deadline_));

    std::vector<std::vector<bool>> proven(size_, std::vector<bool>(size_, false));
    std::vector<std::string> reasons_there(size_);
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      ByteReader reader(verdicts[rank]);
      for (std::uint32_t other = 0; other < size_; ++other) {
        proven[rank][other] = reader.number<std::uint8_t>() != 0;
        std::string reason = reader.text();
        if (other == own_) reasons_there[rank] = std::move(reason);
      }
      WEFT_TRY(reader.finish("a transport's verdict"));
    }
    bool is_used = false;
    for (const transport::Connected& entry : connected) {
      const std::uint32_t rank = entry.peer.value();
      PairReport& report = wiring_.reports[rank];
      if (proven[own_][rank] && proven[rank][own_]) {
        wiring_.links[rank].endpoint = *entry.endpoint;
        wiring_.links[rank].transport_index = static_cast<std::uint32_t>(wiring_.transports.size());
        report.transport = name;
        report.description = (*entry.endpoint)->describe();
        is_used = true;
      } else {
        const std::string& reason = reasons[rank].empty() ? reasons_there[rank] : reasons[rank];
        report.not_taken.push_back(fmt::format("{}: {}", name, reason));
        log::info("{} with {} is not used: {}", name, describe(rank), reason);
        if (entry.endpoint) (*entry.endpoint)->close();
      }
    }
    if (name == "shm") {
      for (std::uint32_t a = 0; a < size_; ++a) {
        for (std::uint32_t b = 0; b < size_; ++b) proven_[a][b] = proven[a][b] && proven[b][a];
      }
    }
    if (is_used) wiring_.transports.push_back(std::move(made));
    return {};
  }

  Status check_complete() {
    std::string missing;
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      if (rank == own_ || wiring_.links[rank].endpoint != nullptr) continue;
      std::string why;
      for (const std::string& reason : wiring_.reports[rank].not_taken) why += (why.empty() ? "" : "; ") + reason;
      missing += fmt::format("{}{} -> {}: {}", missing.empty() ? "" : "; ", describe(own_), describe(rank), why);
      if (missing.size() > 2000) break;
    }
    WEFT_TRY_ASSIGN(const Blobs all,
                    session_.all_gather(group_, "all connected", std::as_bytes(std::span(missing)), deadline_));
    // The last exchange: rank 0 may end as soon as its caller has the communicator, and the service with it.
    session_.pass(group_, "created", deadline_);
    for (const auto& blob : all) {
      if (blob.empty()) continue;
      const std::string text{reinterpret_cast<const char*>(blob.data()), blob.size()};
      return Error{
          ErrorCode::peer_failed, "no transport connects " + text,
          "Check WEFT_TRANSPORTS, WEFT_INTERFACE and firewalls; raise WEFT_CONNECT_TIMEOUT if hosts are slow."};
    }
    return {};
  }

  /// Ranks share a host if memory that they share was proven, directly or through others.
  void find_shape() {
    std::vector<std::uint32_t> host(size_);
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      host[rank] = rank;
      for (std::uint32_t lower = 0; lower < rank; ++lower) {
        if (proven_[rank][lower]) {
          host[rank] = host[lower];
          break;
        }
      }
    }
    wiring_.shape = Shape::of_hosts(host);
  }

  /// Whether ranks that run on one kernel have a core each, and how many cores the ranks of a host have together.
  void judge() {
    std::vector<CoreSet> ours;
    std::vector<CoreSet> of_host(wiring_.shape.num_hosts());
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      const CoreSet cores = CoreSet::from_words(wiring_.ranks[rank].cores);
      of_host[wiring_.shape.host_of(Rank{rank})].merge(cores);
      if (wiring_.ranks[rank].boot_id == wiring_.ranks[own_].boot_id) ours.push_back(cores);
    }
    wiring_.cores = judge_cores(ours);
    const auto fewest = std::min_element(of_host.begin(), of_host.end(), [](const CoreSet& a, const CoreSet& b) {
      return a.num_cores() < b.num_cores();
    });
    wiring_.cores_per_host = fewest->num_cores();
  }

  bootstrap::Session& session_;
  const bootstrap::Group& group_;
  const Settings& settings_;
  Deadline deadline_;
  std::uint32_t size_;
  std::uint32_t own_;
  Wiring wiring_;
  std::vector<std::vector<bool>> proven_;  ///< Pairs that share memory.
};

}  // namespace

Result<Wiring> connect_group(bootstrap::Session& session, const bootstrap::Group& group, const Settings& settings) {
  return Connector{session, group, settings}.run();
}

Wiring lone_wiring() {
  Wiring wiring;
  wiring.ranks.push_back(own_record({}));
  wiring.links.resize(1);
  wiring.links[0].name = "rank 0";
  wiring.reports.resize(1);
  wiring.reports[0].transport = "self";
  wiring.cores_per_host = CoreSet::of_this_thread().num_cores();
  return wiring;
}

}  // namespace weft::collectives
