// AICB's workload traces: comma-separated lines, one per call, below a header that names the columns. A first line like
// "[rank0 ~ rank127]" may come before it. What does not apply is "None" or empty. docs/workloads.md says more.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/text.h"
#include "tools/workload/workload.h"

namespace weft::tools {
namespace {

struct Cell {
  std::string text;        ///< Without quotation marks and surrounding blanks.
  std::size_t column = 1;  ///< Where it begins in the line, from 1.

  [[nodiscard]] bool is_none() const { return text.empty() || text == "None"; }
};

struct Line {
  const std::string& file;
  std::size_t number;
  std::vector<Cell> cells;

  [[nodiscard]] Error wrong(std::size_t column, std::string_view what) const {
    return Error(ErrorCode::malformed, fmt::format("{}:{}:{}: {}", file, number, column, what));
  }
};

/// Splits a line at its commas. A cell may be in quotation marks, which are doubled inside.
Status split(std::string_view text, Line& line) {
  std::size_t at = 0;
  while (true) {
    Cell cell;
    cell.column = at + 1;
    if (at < text.size() && text[at] == '"') {
      for (++at;; ++at) {
        if (at >= text.size()) return line.wrong(cell.column, "a quotation mark is not closed in its line");
        if (text[at] != '"') {
          cell.text += text[at];
        } else if (at + 1 < text.size() && text[at + 1] == '"') {
          cell.text += text[at++];
        } else {
          break;
        }
      }
      ++at;
      if (at < text.size() && text[at] != ',') return line.wrong(at + 1, "a comma is missing after a quotation mark");
    } else {
      const std::size_t end = std::min(text.find(',', at), text.size());
      cell.text = trimmed(text.substr(at, end - at));
      at = end;
    }
    line.cells.push_back(std::move(cell));
    if (at >= text.size()) return {};
    ++at;
  }
}

constexpr std::array<std::string_view, 5> kColumns = {"comm_type", "comm_group_size", "msg_size", "stage", "count"};
enum Column : std::size_t { comm_type, comm_group_size, msg_size, stage, count };

struct Header {
  std::array<std::size_t, kColumns.size()> position{};
  std::size_t num_cells = 0;
};

Result<Header> header_of(const Line& line) {
  Header header;
  header.num_cells = line.cells.size();
  for (std::size_t i = 0; i < kColumns.size(); ++i) {
    const auto found =
        std::find_if(line.cells.begin(), line.cells.end(), [&](const Cell& cell) { return cell.text == kColumns[i]; });
    if (found == line.cells.end()) {
      return line.wrong(1, fmt::format("the header of an AICB trace has a column {}; this line is {}", kColumns[i],
                                       in_quotes(line.cells.front().text)));
    }
    header.position[i] = static_cast<std::size_t>(found - line.cells.begin());
  }
  return header;
}

/// A whole number, also as Python writes a float that is one ("4096.0").
Result<std::uint64_t> number_of(const Line& line, const Cell& cell, std::string_view what) {
  std::string_view text = cell.text;
  if (const std::size_t point = text.find('.'); point != std::string_view::npos && point != 0 &&
                                                text.find_first_not_of('0', point + 1) == std::string_view::npos) {
    text = text.substr(0, point);
  }
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number > std::numeric_limits<std::int64_t>::max()) {
    return line.wrong(cell.column,
                      fmt::format("{} is {}, not a whole number from 0 to 2^63 - 1", what, in_quotes(cell.text)));
  }
  return number;
}

/// AICB's name of a collective without its prefix; its all-to-all has two names.
std::optional<collectives::Collective> collective_of(std::string_view name) {
  if (name == "all_to_all_single") return collectives::Collective::all_to_all;
  if (name == "all_gather_into_tensor") return collectives::Collective::all_gather;
  return collectives::parse_collective(name);
}

void leave_out(Workload& workload, std::string_view what, std::uint64_t count) {
  const auto known = std::find_if(workload.left_out.begin(), workload.left_out.end(),
                                  [&](const LeftOut& entry) { return entry.what == what; });
  if (known != workload.left_out.end()) {
    known->count += count;
  } else {
    workload.left_out.push_back({std::string(what), count});
  }
}

Status read_line(const Line& line, const Header& header, Workload& workload) {
  if (line.cells.size() != header.num_cells) {
    const std::size_t column = line.cells[std::min(line.cells.size(), header.num_cells) - 1].column;
    return line.wrong(column, fmt::format("{} cells where the header has {}", line.cells.size(), header.num_cells));
  }
  const auto cell = [&](Column column) -> const Cell& { return line.cells[header.position[column]]; };
  const Cell& kind = cell(comm_type);
  constexpr std::string_view kPrefix = "CommType.";
  if (!kind.text.starts_with(kPrefix)) {
    return line.wrong(kind.column, fmt::format("comm_type is {}, not CommType.something", in_quotes(kind.text)));
  }
  const std::string_view name = std::string_view(kind.text).substr(kPrefix.size());
  std::uint64_t repeats = 1;
  if (!cell(count).is_none()) {
    WEFT_TRY_ASSIGN(repeats, number_of(line, cell(count), "count"));
  }
  if (repeats == 0) return {};
  if (name == "epoch_end") {
    workload.epoch_ends.push_back(workload.operations.size());
    return {};
  }
  constexpr std::array<std::string_view, 5> kNoCollective = {"isend", "irecv", "send", "recv", "computation"};
  if (std::find(kNoCollective.begin(), kNoCollective.end(), name) != kNoCollective.end()) {
    leave_out(workload, name, repeats);
    return {};
  }
  const auto collective = collective_of(name);
  if (!collective) return line.wrong(kind.column, fmt::format("{} is no known kind of call", in_quotes(kind.text)));

  Operation operation{*collective, std::nullopt, 0, cell(stage).is_none() ? "" : cell(stage).text, repeats};
  if (!cell(comm_group_size).is_none()) {
    WEFT_TRY_ASSIGN(const std::uint64_t ranks, number_of(line, cell(comm_group_size), "comm_group_size"));
    if (ranks == 0 || ranks > std::numeric_limits<std::uint32_t>::max()) {
      return line.wrong(cell(comm_group_size).column, "comm_group_size is not from 1 to 2^32 - 1");
    }
    operation.group_size = static_cast<std::uint32_t>(ranks);
  }
  if (!cell(msg_size).is_none()) {
    WEFT_TRY_ASSIGN(operation.size_bytes, number_of(line, cell(msg_size), "msg_size"));
  } else if (*collective != collectives::Collective::barrier) {
    return line.wrong(cell(msg_size).column, "msg_size is missing");
  }
  workload.operations.push_back(std::move(operation));
  return {};
}

}  // namespace

Result<Workload> parse_aicb_trace(std::string_view text, const std::string& name) {
  Workload workload;
  workload.name = name.substr(name.rfind('/') + 1);
  // Sizes are in bytes and may be odd: a trace names no element type.
  workload.type = device::DataType::u8;
  std::optional<Header> header;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (content.ends_with('\r')) content.remove_suffix(1);
    if (trimmed(content).empty()) continue;
    if (!header && content.starts_with('[')) continue;
    Line line{name, number, {}};
    WEFT_TRY(split(content, line));
    if (!header) {
      WEFT_TRY_ASSIGN(header, header_of(line));
    } else {
      WEFT_TRY(read_line(line, *header, workload));
    }
  }
  if (!header) {
    return Error(ErrorCode::malformed, fmt::format("{}:{}:1: neither a JSON workload nor an AICB trace: no header",
                                                   name, std::max<std::size_t>(number, 1)));
  }
  return workload;
}

}  // namespace weft::tools
