#include "tools/bench/options.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"

namespace weft::tools {
namespace {

constexpr std::uint64_t kSizesMax = 10'000;
constexpr std::uint64_t kIterationsMax = 10'000'000;

Error refusal(std::string why, std::string remedy = {}) {
  return Error{ErrorCode::invalid_argument, std::move(why), std::move(remedy)};
}

}  // namespace

Result<std::vector<device::ReduceOp>> parse_ops(const std::string& text) {
  if (text == "all") {
    using enum device::ReduceOp;
    return std::vector{sum, prod, min, max, avg};
  }
  const auto op = device::parse_reduce_op(text);
  if (!op) return refusal("unknown reduction " + in_quotes(text), "there are sum, prod, min, max, avg, all");
  return std::vector{*op};
}

Status choose_subject(BenchOptions& options, const std::string& what, const std::string& file) {
  if (what == "workload") {
    if (file.empty()) return refusal("workload without a file", "weft bench workload workloads/resnet50.json");
    options.subject = Subject::workload;
    options.workload_paths = {file};
    return {};
  }
  if (!file.empty()) return refusal("one argument too many: " + in_quotes(file));
  if (what == "p2p") {
    options.subject = Subject::point_to_point;
  } else if (what == "send_recv") {
    options.subject = Subject::ping_pong;
  } else if (what == "all") {
    for (std::uint8_t i = 0; i < collectives::kCollectives; ++i)
      options.collectives.push_back(collectives::Collective{i});
  } else if (const auto collective = collectives::parse_collective(what)) {
    options.collectives = {*collective};
  } else {
    return refusal("nothing is called " + in_quotes(what),
                   "there are all_reduce, reduce, broadcast, all_gather, reduce_scatter, gather, scatter, all_to_all, "
                   "barrier, all, p2p, send_recv, workload FILE");
  }
  return {};
}

Status check(const BenchOptions& options, std::uint32_t ranks) {
  const std::uint64_t type_bytes = device::size_of(options.type);
  if (options.begin_bytes < type_bytes) {
    return refusal(fmt::format("-b {} is less than one element of {} ({} bytes)", options.begin_bytes,
                               device::name_of(options.type), type_bytes));
  }
  if (options.end_bytes < options.begin_bytes) {
    return refusal(
        fmt::format("-e {} is less than -b {}", format_bytes(options.end_bytes), format_bytes(options.begin_bytes)));
  }
  if (options.end_bytes > (std::uint64_t{1} << 40)) return refusal("-e is over 1T");
  if (options.step_bytes == 0 && options.factor < 2) return refusal("-f must be 2 or more", "-i BYTES grows by steps");
  if (options.step_bytes > 0 && (options.end_bytes - options.begin_bytes) / options.step_bytes >= kSizesMax) {
    return refusal(fmt::format("-i {} gives over {} sizes", options.step_bytes, kSizesMax));
  }
  if (options.iterations > kIterationsMax) return refusal(fmt::format("-n is at most {}", kIterationsMax));
  if (options.warm_ups > kIterationsMax) return refusal(fmt::format("-w is at most {}", kIterationsMax));
  if (options.budget <= Nanos::zero() || options.budget > std::chrono::hours(1)) return refusal("--budget is up to 1h");
  if (options.root >= ranks) return refusal(fmt::format("-r {}, but the ranks are 0 to {}", options.root, ranks - 1));
  const bool is_point_to_point = options.subject == Subject::point_to_point || options.subject == Subject::ping_pong;
  if (is_point_to_point && ranks < 2) return refusal("point to point needs 2 ranks", "start it with -N 2");
  if (options.wants_pairs && !is_point_to_point) return refusal("--pairs is for p2p and send_recv");
  if (options.steps == 0 || options.steps > kIterationsMax) return refusal("--steps must be 1 or more");
  if (!(options.scale > 0 && options.scale <= 1024)) return refusal("--scale is more than 0 and at most 1024");
  if (!(options.threshold_busbw >= 0)) return refusal("--threshold-busbw cannot be negative");
  if (options.threshold_busbw > 0 && ranks < 2) return refusal("--threshold-busbw has no meaning for one rank");
  if (options.threshold_busbw > 0 && options.subject == Subject::workload) {
    return refusal("--threshold-busbw is not for workloads");
  }
  return {};
}

std::vector<std::uint64_t> sizes_of(const BenchOptions& options) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = options.begin_bytes; size <= options.end_bytes;
       size = options.step_bytes > 0 ? size + options.step_bytes : size * options.factor) {
    sizes.push_back(size);
    if (options.step_bytes == 0 && size > options.end_bytes / options.factor) break;  // The product could overflow.
  }
  return sizes;
}

}  // namespace weft::tools
