#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/settings.h"
#include "base/spin.h"
#include "bootstrap/session.h"
#include "collectives/engine/engine.h"
#include "collectives/rank_record.h"
#include "collectives/shape.h"
#include "transport/transport.h"

namespace weft::collectives {

/// How this rank reaches one peer, and why not in a better way.
struct PairReport {
  std::string transport;               ///< "shm", "tcp", or "self".
  std::string description;             ///< Of the endpoint.
  std::vector<std::string> not_taken;  ///< "shm: WEFT_HOST_ID differs", in order of preference.
};

/// Connections between all ranks of a group: who is where, which transports serve which pairs.
struct Wiring {
  std::vector<RankRecord> ranks;
  std::vector<std::unique_ptr<transport::Transport>> transports;
  std::vector<engine::LinkInfo> links;  ///< By rank of the group.
  std::vector<PairReport> reports;      ///< By rank of the group.
  Shape shape = Shape::flat(RankCount{1});
  Cores cores = Cores::enough;
  std::uint32_t cores_per_host = 0;  ///< Of the host with the fewest.
};

/// Connects the ranks of `group`. Transports are tried in the order of WEFT_TRANSPORTS; a pair takes the first that
/// both of its ranks proved to work. Collective over the group; Thread: blocking, at most WEFT_CONNECT_TIMEOUT. Errors:
/// those of Session; mismatch — ranks have different settings that must be equal (both named);
///         peer_failed — a pair that no transport serves, with what each said; all ranks then fail.
Result<Wiring> connect_group(bootstrap::Session& session, const bootstrap::Group& group, const Settings& settings);

/// The wiring of a rank that is alone.
Wiring lone_wiring();

}  // namespace weft::collectives
