// What was chosen and why, as JSON (docs/describe.md has the schema).
#include <fmt/format.h>

#include "base/settings_report.h"
#include "base/text.h"
#include "collectives/communicator.h"
#include "device/host/kernels.h"

namespace weft::collectives {
namespace {

std::string json_list(const std::vector<std::string>& items) {
  std::string text = "[";
  for (const std::string& item : items) text += (text.size() > 1 ? ", " : "") + json_string(item);
  return text + "]";
}

}  // namespace

std::string Communicator::describe() const {
  std::string text = "{\n";
  text += "  \"schema\": \"weft-communicator-1\",\n";
  text += fmt::format("  \"rank\": {}, \"size\": {}, \"hosts\": {}, \"cores_per_host\": {},\n", rank().value(),
                      ranks().value(), wiring_.shape.num_hosts(), wiring_.cores_per_host);
  text += fmt::format("  \"identity\": {}, \"kernels\": {},\n", json_string(job_->identity.source),
                      json_string(device::kernel_target()));
  text += fmt::format(
      "  \"waiting\": {},\n",
      json_string(wiring_.cores == Cores::crowded ? "yields at once: more ranks than cores" : "polls, then sleeps"));
  text += "  \"ranks\": [\n";
  for (std::uint32_t peer = 0; peer < ranks().value(); ++peer) {
    const RankRecord& record = wiring_.ranks[peer];
    const PairReport& report = wiring_.reports[peer];
    text += fmt::format(
        "    {{\"rank\": {}, \"host\": {}, \"pid\": {}, \"host_index\": {}, \"transport\": {}, \"link\": {}, "
        "\"not_taken\": {}}}{}\n",
        peer, json_string(record.host), record.pid, wiring_.shape.host_of(Rank{peer}), json_string(report.transport),
        json_string(report.description), json_list(report.not_taken), peer + 1 < ranks().value() ? "," : "");
  }
  text += "  ],\n";
  text += "  \"settings\": " + settings_json(job_->settings);
  return text + "}\n";
}

}  // namespace weft::collectives
