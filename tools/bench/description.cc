#include "tools/bench/description.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include <fmt/format.h>
#include <boost/json.hpp>

namespace weft::tools {
namespace {

namespace json = boost::json;

std::string text_of(const json::object& object, const char* name) {
  const json::value* const value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string{value->get_string()} : "";
}

std::uint32_t number_of(const json::object& object, const char* name) {
  const json::value* const value = object.if_contains(name);
  if (value == nullptr || !value->is_number()) return 0;
  return static_cast<std::uint32_t>(value->to_number<std::int64_t>());
}

Description read(const json::object& root) {
  Description description;
  description.rank = number_of(root, "rank");
  description.hosts = number_of(root, "hosts");
  description.cores_per_host = number_of(root, "cores_per_host");
  description.identity = text_of(root, "identity");
  description.kernels = text_of(root, "kernels");
  description.waiting = text_of(root, "waiting");
  for (const json::value& entry : root.at("ranks").as_array()) {
    const json::object& rank = entry.as_object();
    Description::Peer peer{text_of(rank, "host"),      number_of(rank, "pid"), number_of(rank, "host_index"),
                           text_of(rank, "transport"), text_of(rank, "link"),  ""};
    for (const json::value& reason : rank.at("not_taken").as_array()) {
      peer.not_taken += (peer.not_taken.empty() ? "" : "; ") + std::string{reason.as_string()};
    }
    description.peers.push_back(std::move(peer));
  }
  for (const json::value& entry : root.at("settings").as_array()) {
    const json::object& setting = entry.as_object();
    const std::string name = text_of(setting, "name");
    const json::value* const value = setting.if_contains("value");
    if (text_of(setting, "origin") == "default" || value == nullptr || value->is_null()) continue;
    // Who and where this rank is stands elsewhere.
    constexpr std::array kIdentity = {"WEFT_RANK", "WEFT_SIZE", "WEFT_LOCAL_RANK", "WEFT_LOCAL_SIZE", "WEFT_ADDRESS"};
    if (std::find(kIdentity.begin(), kIdentity.end(), name) != kIdentity.end()) continue;
    const std::string text = value->is_string() ? std::string{value->get_string()} : json::serialize(*value);
    description.changed_settings.push_back(name + "=" + text);
  }
  return description;
}

}  // namespace

collectives::Shape Description::shape() const {
  std::vector<std::uint32_t> host_of_rank;
  for (const Peer& peer : peers) host_of_rank.push_back(peer.host_index);
  return collectives::Shape::of_hosts(host_of_rank);
}

Result<Description> parse_description(const std::string& text) {
  try {
    return read(json::parse(text).as_object());
  } catch (const std::exception& failure) {  // Boost.JSON's way to say that a member is missing or of another kind.
    return Error{ErrorCode::malformed, fmt::format("the description of a communicator: {}", failure.what())};
  }
}

Result<Description> describe(weft_communicator_t* communicator) {
  std::size_t length = 0;
  WEFT_TRY(checked(weft_describe(communicator, nullptr, 0, &length)));
  std::string text(length + 1, '\0');
  WEFT_TRY(checked(weft_describe(communicator, text.data(), text.size(), &length)));
  text.resize(std::min(length, text.size() - 1));
  return parse_description(text);
}

Result<std::vector<Pair>> gather_pairs(weft_communicator_t* communicator, const Description& own) {
  // Cells of one size, so that one all_gather does; a long reason is cut.
  using Cell = std::array<char, 256>;
  const std::size_t ranks = own.peers.size();
  std::vector<Cell> mine(ranks);
  for (std::size_t to = 0; to < ranks; ++to) {
    const std::string text = own.peers[to].transport + '\n' + own.peers[to].not_taken;
    std::memcpy(mine[to].data(), text.data(), std::min(text.size(), mine[to].size() - 1));
  }
  std::vector<Cell> all(ranks * ranks);
  WEFT_TRY(checked(weft_all_gather(communicator, mine.data(), all.data(), ranks * sizeof(Cell), WEFT_U8)));
  std::vector<Pair> pairs;
  for (std::uint32_t from = 0; from < ranks; ++from) {
    for (std::uint32_t to = 0; to < ranks; ++to) {
      if (from == to) continue;
      const std::string text = all[from * ranks + to].data();
      const std::size_t newline = std::min(text.find('\n'), text.size());
      pairs.push_back({from, to, text.substr(0, newline), text.substr(std::min(newline + 1, text.size()))});
    }
  }
  return pairs;
}

static_assert(WEFT_ERROR_SYSTEM == static_cast<int>(ErrorCode::system) + 1);
static_assert(WEFT_ERROR_PEER_FAILED == static_cast<int>(ErrorCode::peer_failed) + 1);

Status checked(weft_status_t status) {
  if (status == WEFT_SUCCESS) return {};
  // The codes are the same, but for success; the message begins with the code's name, which Error adds again.
  const auto code = static_cast<ErrorCode>(status - 1);
  std::string_view text = weft_last_error();
  const std::string prefix = fmt::format("{}: ", name_of(code));
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  return Error{code, std::string{text}};
}

}  // namespace weft::tools
