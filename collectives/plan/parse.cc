#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <optional>

#include "collectives/plan/buffers.h"
#include "collectives/plan/text.h"

namespace weft::collectives::plan {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::size_t kMaxNameLength = 200;  // A name is a column of a table, not a place to put data.

/// Reads words line by line. The first failure stays; after it every read answers nothing.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  /// Goes to the next line that says something; false at the end.
  bool next_line() {
    while (!rest_.empty()) {
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      line_ = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++line_number_;
      skip_blanks();
      if (!line_.empty() && line_.front() != '#') return true;
    }
    line_ = {};
    return false;
  }
  [[nodiscard]] bool is_line_done() const { return line_.empty(); }
  [[nodiscard]] std::string_view peek() const { return line_.substr(0, line_.find_first_of(kBlanks)); }
  std::string_view word() {
    const std::string_view found = peek();
    line_.remove_prefix(found.size());
    skip_blanks();
    return found;
  }
  /// All that is left of the line.
  std::string_view remainder() {
    std::string_view found = line_;
    while (!found.empty() && kBlanks.find(found.back()) != std::string_view::npos) found.remove_suffix(1);
    line_ = {};
    return found;
  }

  bool expect(std::string_view wanted) {
    if (peek() != wanted) {
      fail(fmt::format("expected '{}'", wanted));
      return false;
    }
    word();
    return true;
  }
  std::uint32_t number(std::uint32_t max = std::numeric_limits<std::uint32_t>::max()) { return to_number(word(), max); }
  std::uint32_t to_number(std::string_view text, std::uint32_t max = std::numeric_limits<std::uint32_t>::max()) {
    std::uint32_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    // No sign, no leading zeros: each plan has one text.
    const bool is_plain =
        code == std::errc{} && end == text.data() + text.size() && (text.size() == 1 || text[0] != '0');
    if (!is_plain || value > max) {
      fail(fmt::format("expected a number up to {}, found '{}'", max, shorten(text)));
      return 0;
    }
    return value;
  }
  void expect_line_end() {
    if (!is_line_done()) fail(fmt::format("'{}' is too much", shorten(peek())));
  }

  void fail(const std::string& what, ErrorCode code = ErrorCode::malformed) {
    if (!error_) error_ = Error{code, fmt::format("plan text, line {}: {}", line_number_, what)};
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  /// A piece of hostile text that fits into a message.
  static std::string shorten(std::string_view text) {
    std::string result;
    for (const char c : text.substr(0, 40)) result += c >= ' ' && c < 0x7f ? c : '?';
    return result + (text.size() > 40 ? "..." : "");
  }

 private:
  void skip_blanks() { line_.remove_prefix(std::min(line_.find_first_not_of(kBlanks), line_.size())); }

  std::string_view rest_;
  std::string_view line_;
  std::size_t line_number_ = 0;
  std::optional<Error> error_;
};

class Parser {
 public:
  Parser(std::string_view text, const TextLimits& limits) : reader_(text), limits_(limits) {}

  Result<Plan> parse() {
    header();
    if (reader_.error()) return *reader_.error();
    plan_.steps.resize(plan_.contract.ranks.value());
    plan_.scratch_chunks.resize(plan_.contract.ranks.value(), 0);
    for (std::uint32_t rank = 0; rank < plan_.contract.ranks.value(); ++rank) {
      // The line of this rank is the one at which the steps before it ended.
      if (!reader_.is_line_done() || reader_.next_line()) {
        steps_of(Rank{rank});
      } else {
        reader_.fail(fmt::format("the text ends before rank {}", rank));
      }
      if (reader_.error()) return *reader_.error();
    }
    if (!reader_.is_line_done()) reader_.fail("expected the end: all ranks have had their steps");
    if (reader_.error()) return *reader_.error();
    return std::move(plan_);
  }

 private:
  void header();
  void steps_of(Rank rank);
  Step step(Rank rank);
  Location location(Rank rank);
  std::string_view line_of(std::string_view key) {
    if (!reader_.next_line()) reader_.fail(fmt::format("the text ends before '{}'", key));
    reader_.expect(key);
    return reader_.remainder();
  }
  std::uint32_t number_of(std::string_view key, std::uint32_t max) {
    const std::string_view text = line_of(key);
    return reader_.error() ? 0 : reader_.to_number(text, max);
  }
  void count_chunks(std::uint64_t chunks) {
    num_chunks_ += chunks;
    if (num_chunks_ > limits_.max_chunks) {
      reader_.fail(fmt::format("the plan has more than {} chunks", limits_.max_chunks), ErrorCode::limit_exceeded);
    }
  }

  Reader reader_;
  const TextLimits& limits_;
  Plan plan_;
  std::uint64_t num_chunks_ = 0;
  std::uint64_t num_steps_ = 0;
};

void Parser::header() {
  constexpr std::uint32_t kMax = std::numeric_limits<std::uint32_t>::max();
  constexpr std::uint32_t kMaxLanes = std::uint32_t{std::numeric_limits<std::uint16_t>::max()} + 1;
  if (line_of("weft-plan") != "1") reader_.fail("this version reads texts that begin with 'weft-plan 1'");
  const std::string_view name = line_of("name");
  if (name.size() > kMaxNameLength) reader_.fail("the name is too long");
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) reader_.fail("the name holds a control character");
  }
  plan_.name = name.substr(0, kMaxNameLength);

  const std::string_view collective = line_of("collective");
  if (const auto parsed = parse_collective(collective)) {
    plan_.contract.collective = *parsed;
  } else {
    reader_.fail(fmt::format("'{}' is no collective", Reader::shorten(collective)));
  }
  const std::uint32_t ranks = number_of("ranks", kMax);
  if (ranks == 0) reader_.fail("a group has at least one rank");
  if (ranks > limits_.max_ranks) {
    reader_.fail(fmt::format("{} ranks are over the limit of {}", ranks, limits_.max_ranks), ErrorCode::limit_exceeded);
  }
  if (reader_.error()) return;
  plan_.contract.ranks = RankCount{ranks};
  plan_.contract.root = Rank{number_of("root", ranks - 1)};
  const std::string_view placement = line_of("placement");
  if (placement == "in_place") {
    plan_.contract.placement = Placement::in_place;
  } else if (placement != "out_of_place") {
    reader_.fail("expected 'in_place' or 'out_of_place'");
  }
  plan_.parts_per_block = number_of("parts", kMax);
  plan_.lanes = number_of("lanes", kMaxLanes);
  plan_.num_transfers = number_of("transfers", kMax);
  if (plan_.parts_per_block == 0 || plan_.lanes == 0) reader_.fail("a plan has at least one part and one lane");
  if (reader_.error()) return;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (const std::uint64_t blocks :
         {plan_.contract.input_blocks(Rank{rank}), plan_.contract.output_blocks(Rank{rank})}) {
      count_chunks(blocks * plan_.parts_per_block);
    }
  }
}

void Parser::steps_of(Rank rank) {
  if (!reader_.expect("rank")) return;
  if (reader_.number() != rank.value()) return reader_.fail(fmt::format("expected rank {}", rank.value()));
  if (!reader_.expect("scratch")) return;
  plan_.scratch_chunks[rank.index()] = reader_.number();
  count_chunks(plan_.scratch_chunks[rank.index()]);
  reader_.expect_line_end();

  std::vector<Step>& steps = plan_.steps[rank.index()];
  while (!reader_.error() && reader_.next_line() && reader_.peek() != "rank") {
    if (++num_steps_ > limits_.max_steps) {
      return reader_.fail(fmt::format("the plan has more than {} steps", limits_.max_steps), ErrorCode::limit_exceeded);
    }
    if (reader_.number() != steps.size()) return reader_.fail(fmt::format("expected step {}", steps.size()));
    steps.push_back(step(rank));
    reader_.expect_line_end();
  }
}

Step Parser::step(Rank rank) {
  Step step;
  const std::string_view kind = reader_.word();
  bool is_known = false;
  for (const StepKind candidate :
       {StepKind::send, StepKind::receive, StepKind::receive_reduce, StepKind::copy, StepKind::reduce}) {
    if (kind != name_of(candidate)) continue;
    step.kind = candidate;
    is_known = true;
  }
  if (!is_known) {
    reader_.fail(fmt::format("'{}' is no kind of step", Reader::shorten(kind)));
    return step;
  }
  if (is_transfer(step.kind)) {
    const std::string_view transfer = reader_.word();
    if (transfer.empty() || transfer.front() != 't') {
      reader_.fail("expected a transfer, as in 't7'");
      return step;
    }
    step.transfer = reader_.to_number(transfer.substr(1));
  }
  (step.kind == StepKind::send ? step.source : step.destination) = location(rank);
  if (step.kind != StepKind::send && step.kind != StepKind::receive) {
    reader_.expect("=");
    step.source = location(rank);
    if (step.kind != StepKind::copy) reader_.expect("op");
    if (step.kind == StepKind::reduce) step.second = location(rank);
  }
  if (is_transfer(step.kind)) {
    reader_.expect(step.kind == StepKind::send ? "to" : "from");
    step.peer = Rank{reader_.number()};
    if (reader_.peek() == "lane") {
      reader_.word();
      step.lane = static_cast<std::uint16_t>(reader_.number(std::numeric_limits<std::uint16_t>::max()));
    }
  }
  if (reader_.peek() == "after") {
    reader_.word();
    do step.after.push_back(reader_.number());
    while (!reader_.error() && !reader_.is_line_done());
  }
  return step;
}

Location Parser::location(Rank rank) {
  std::string_view text = reader_.word();
  Location location;
  location.rank = rank;
  const std::size_t open = text.find('[');
  const std::size_t dot = text.find('.');
  const std::size_t close = text.find(']');
  if (open == std::string_view::npos || dot == std::string_view::npos || close == std::string_view::npos ||
      dot < open || close < dot) {
    reader_.fail(fmt::format("expected a location, as in 'output[0.1]', found '{}'", Reader::shorten(text)));
    return location;
  }
  const std::string_view buffer = text.substr(0, open);
  bool is_known = false;
  for (const Buffer candidate : {Buffer::input, Buffer::output, Buffer::scratch}) {
    if (buffer != name_of(candidate)) continue;
    location.buffer = candidate;
    is_known = true;
  }
  if (!is_known) reader_.fail(fmt::format("'{}' is no buffer", Reader::shorten(buffer)));
  const std::uint64_t block = reader_.to_number(text.substr(open + 1, dot - open - 1));
  const std::uint32_t part = reader_.to_number(text.substr(dot + 1, close - dot - 1), plan_.parts_per_block - 1);
  const std::uint64_t chunk = block * plan_.parts_per_block + part;
  if (chunk > std::numeric_limits<std::uint32_t>::max()) reader_.fail("the chunk's number is over 32 bits");
  location.chunk = static_cast<std::uint32_t>(chunk);
  const std::string_view at = text.substr(close + 1);
  if (at.empty()) return location;
  if (at.front() != '@') reader_.fail(fmt::format("'{}' is too much", Reader::shorten(at)));
  location.rank = Rank{reader_.to_number(at.substr(1))};
  return location;
}

}  // namespace

Result<Plan> parse_plan(std::string_view text, const TextLimits& limits) { return Parser{text, limits}.parse(); }

}  // namespace weft::collectives::plan
