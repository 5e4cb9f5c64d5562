#include "collectives/plan/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "base/text.h"
#include "collectives/plan/describe.h"
#include "collectives/plan/graph.h"

namespace weft::collectives::plan {
namespace {

constexpr std::uint32_t kMaxRanks = 64;
constexpr std::uint32_t kMaxSteps = 8192;  // Not measured: a bound on the size of the picture.

// Pixels. Lanes are as far apart as their labels need; a few ranks get more room, many less.
constexpr double kMargin = 28;
constexpr double kRoundLabelWidth = 70;
constexpr double kHeaderHeight = 104;
constexpr double kStepHeight = 22;
constexpr double kRoundPadding = 19;
constexpr double kLegendHeight = 56;
constexpr double kMarkRadius = 5;
constexpr double kMinWidth = 760;  // The legend fits.

constexpr std::string_view kStyle =
    "<style>text{font-family:'DejaVu Sans',Verdana,sans-serif;fill:#1f2933}.title{font-size:18px;font-weight:600}"
    ".sub{font-size:12px;fill:#616e7c}.rank{font-size:12px;font-weight:600;text-anchor:middle}"
    ".round{font-size:11px;fill:#7b8794}.chunk{font-size:9.5px;fill:#3e4c59;paint-order:stroke;stroke:#fff;"
    "stroke-width:3px;stroke-opacity:.8}.lane{stroke:#cbd2d9;stroke-width:1.5}.after{fill:none;stroke:#9aa5b1;"
    "stroke-width:1;stroke-dasharray:2 2}.move{fill:none;stroke-width:1.6}.overwrite{stroke:#2f6fb0}"
    ".reduce{stroke:#d9661f}.far{stroke-opacity:.6}</style>\n"
    "<defs>"
    "<marker id=\"overwrite\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" "
    "orient=\"auto\"><path d=\"M0 0.8L8 4L0 7.2z\" fill=\"#2f6fb0\"/></marker>"
    "<marker id=\"reduce\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" "
    "orient=\"auto\"><path d=\"M0 0.8L8 4L0 7.2z\" fill=\"#d9661f\"/></marker>"
    "</defs>\n";

struct Point {
  double x = 0;
  double y = 0;
};

class Drawing {
 public:
  explicit Drawing(const Graph& graph) : graph_(graph), plan_(graph.plan()) { lay_out(); }
  std::string svg();

 private:
  void lay_out();
  void draw_frame();
  void draw_rounds();
  void draw_lanes();
  void draw_local_edge(Graph::Node from, Graph::Node to);
  void draw_transfer(Graph::Node send);
  void draw_label(Graph::Node node);
  void draw_step(Graph::Node node);
  void draw_mark(Point at, StepKind kind, const std::string& says);
  void draw_legend();
  [[nodiscard]] std::string label(Graph::Node node) const;
  [[nodiscard]] double lane_x(std::size_t rank) const { return first_lane_ + static_cast<double>(rank) * lane_gap_; }
  template <class... Args>
  void add(fmt::format_string<Args...> pattern, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), pattern, std::forward<Args>(args)...);
  }

  const Graph& graph_;
  const Plan& plan_;
  std::string out_;
  std::vector<Point> at_;        ///< Per node.
  std::vector<double> round_y_;  ///< Per round its top, and one past the last.
  double lane_gap_ = 0;
  double first_lane_ = 0;
  double width_ = 0;
  double height_ = 0;
  bool has_labels_ = true;
};

/// Rounds are bands; in a band each lane lists its steps in an order in which they can run.
void Drawing::lay_out() {
  const std::size_t ranks = plan_.steps.size();
  lane_gap_ = ranks <= 4 ? 150 : ranks <= 8 ? 118 : ranks <= 16 ? 92 : 44;
  has_labels_ = ranks <= 16;
  const std::vector<std::uint32_t> depths = graph_.depths();
  const std::uint32_t rounds = depths.empty() ? 1 : *std::max_element(depths.begin(), depths.end()) + 1;
  std::vector<std::vector<std::uint32_t>> used(rounds, std::vector<std::uint32_t>(ranks, 0));
  std::vector<std::uint32_t> place(graph_.num_nodes());
  for (const Graph::Node node : graph_.order()) place[node] = used[depths[node]][graph_.rank_of(node).index()]++;

  double y = kHeaderHeight;
  for (const auto& lanes : used) {
    round_y_.push_back(y);
    y += kRoundPadding * 2 + kStepHeight * std::max<std::uint32_t>(1, *std::max_element(lanes.begin(), lanes.end()));
  }
  round_y_.push_back(y);
  const double lanes_width = lane_gap_ * static_cast<double>(ranks);
  width_ = std::max(kMinWidth, kMargin * 2 + kRoundLabelWidth + lanes_width);
  height_ = y + kLegendHeight;
  first_lane_ =
      kMargin + kRoundLabelWidth + (width_ - kMargin * 2 - kRoundLabelWidth - lanes_width) / 2 + lane_gap_ / 2;
  at_.resize(graph_.num_nodes());
  for (Graph::Node node = 0; node < graph_.num_nodes(); ++node) {
    at_[node] = {lane_x(graph_.rank_of(node).index()),
                 round_y_[depths[node]] + kRoundPadding + kStepHeight * (place[node] + 0.5)};
  }
}

std::string Drawing::svg() {
  draw_frame();
  draw_rounds();
  draw_lanes();
  for (Graph::Node node = 0; node < graph_.num_nodes(); ++node) {
    const Rank rank = graph_.rank_of(node);
    for (const std::uint32_t before : graph_.step(node).after) draw_local_edge(graph_.node_at(rank, before), node);
  }
  // Labels go under the arrows: their halo would cut them.
  for (Graph::Node node = 0; has_labels_ && node < graph_.num_nodes(); ++node) draw_label(node);
  for (Graph::Node node = 0; node < graph_.num_nodes(); ++node) {
    if (graph_.step(node).kind == StepKind::send) draw_transfer(node);
  }
  for (Graph::Node node = 0; node < graph_.num_nodes(); ++node) draw_step(node);
  draw_legend();
  out_ += "</svg>\n";
  return std::move(out_);
}

void Drawing::draw_frame() {
  const Contract& contract = plan_.contract;
  add("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\">\n",
      width_, height_);
  out_ += kStyle;
  add("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
  const std::string root = has_root(contract.collective) ? fmt::format(", root {}", contract.root.value()) : "";
  const std::string title = fmt::format("{}: {}", plan_.name, name_of(contract.collective));
  add("<title>{0}</title><text class=\"title\" x=\"{1}\" y=\"36\">{0}</text>\n", xml_escaped(title, " "), kMargin);
  const auto plural = [](std::uint64_t count, std::string_view noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
  };
  add("<text class=\"sub\" x=\"{}\" y=\"57\">{}{}, {} · {} of a block · {} · {} in {}</text>\n", kMargin,
      plural(contract.ranks.value(), "rank"), root,
      contract.placement == Placement::in_place ? "in place" : "out of place", plural(plan_.parts_per_block, "part"),
      plural(graph_.num_nodes(), "step"), plural(plan_.num_transfers, "transfer"),
      plural(round_y_.size() - 2, "round"));
}

void Drawing::draw_rounds() {
  for (std::size_t round = 0; round + 1 < round_y_.size(); ++round) {
    const double top = round_y_[round];
    if (round % 2 == 0) {
      add("<rect x=\"{}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"6\" fill=\"#f5f7fa\"/>\n", kMargin, top,
          width_ - 2 * kMargin, round_y_[round + 1] - top);
    }
    add("<text class=\"round\" x=\"{}\" y=\"{:.1f}\">{}</text>\n", kMargin + 10, top + 19,
        round == 0 ? std::string("start") : fmt::format("round {}", round));
  }
}

void Drawing::draw_lanes() {
  for (std::size_t rank = 0; rank < plan_.steps.size(); ++rank) {
    add("<line class=\"lane\" x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\"/>\n", lane_x(rank),
        kHeaderHeight, round_y_.back());
    add("<text class=\"rank\" x=\"{:.1f}\" y=\"{:.1f}\">{}{}</text>\n", lane_x(rank), kHeaderHeight - 10,
        lane_gap_ < 50 ? "" : "rank ", rank);
  }
}

/// An arc to the left of the lane, wider for a longer way. The lane itself shows the way between neighbours.
void Drawing::draw_local_edge(Graph::Node from, Graph::Node to) {
  const Point a = at_[from];
  const Point b = at_[to];
  const double distance = std::abs(b.y - a.y);
  if (distance <= kStepHeight * 1.1) return;
  const double bulge = std::min(lane_gap_ * 0.3, 8 + distance * 0.06);
  add("<path class=\"after\" d=\"M{0:.1f} {1:.1f}C{2:.1f} {1:.1f} {2:.1f} {3:.1f} {0:.1f} {3:.1f}\"/>\n", a.x, a.y,
      a.x - bulge * 1.33, b.y);
}

void Drawing::draw_transfer(Graph::Node send) {
  const Graph::Node receive = graph_.other_end(send);
  const Point a = at_[send];
  const Point b = at_[receive];
  const bool is_reduce = graph_.step(receive).kind == StepKind::receive_reduce;
  // Leaves and arrives steeply, so that a long arrow runs between the rounds and not through the labels beside the
  // lanes; but not upright, or the arrows into steps below each other would run into one. Ends at the mark's edge.
  const double dx = b.x - a.x;
  const double rise = std::min((b.y - a.y) * 0.5, 24.0);
  const double lean = std::clamp(dx * 0.2, -22.0, 22.0);
  const double length = std::hypot(lean, rise);
  const Point off{lean / length * (kMarkRadius + 1.5), rise / length * (kMarkRadius + 1.5)};
  const std::string_view kind = is_reduce ? "reduce" : "overwrite";
  add("<path class=\"move {}{}\" marker-end=\"url(#{})\" "
      "d=\"M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}\">",
      kind, std::abs(dx) > lane_gap_ * 1.5 ? " far" : "", kind, a.x + off.x, a.y + off.y, a.x + lean, a.y + rise,
      b.x - lean, b.y - rise, b.x - off.x, b.y - off.y);
  const Step& step = graph_.step(send);
  add("<title>transfer {}: {} to {} ({})</title></path>\n", step.transfer, describe(step.source, plan_.parts_per_block),
      describe(graph_.step(receive).destination, plan_.parts_per_block), kind);
}

/// What the step leaves behind, or what it sends: "out 0.1"; of plans with one part a block only the block.
std::string Drawing::label(Graph::Node node) const {
  const Step& step = graph_.step(node);
  const Location& place = step.kind == StepKind::send ? step.source : step.destination;
  const std::string_view buffer = place.buffer == Buffer::input ? "in" : place.buffer == Buffer::output ? "out" : "tmp";
  const std::uint32_t block = place.chunk / plan_.parts_per_block;
  if (plan_.parts_per_block == 1) return fmt::format("{} {}", buffer, block);
  return fmt::format("{} {}.{}", buffer, block, place.chunk % plan_.parts_per_block);
}

void Drawing::draw_label(Graph::Node node) {
  add("<text class=\"chunk\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", at_[node].x + kMarkRadius + 5, at_[node].y + 3.5,
      label(node));
}

void Drawing::draw_step(Graph::Node node) {
  const Step& step = graph_.step(node);
  const Location& place = step.kind == StepKind::send ? step.source : step.destination;
  draw_mark(at_[node], step.kind, fmt::format("{}, {}", graph_.describe(node), describe(place, plan_.parts_per_block)));
}

void Drawing::draw_mark(Point at, StepKind kind, const std::string& says) {
  constexpr std::string_view kBlue = "#2f6fb0";
  constexpr std::string_view kOrange = "#d9661f";
  constexpr std::string_view kGrey = "#52606d";
  const auto circle = [&](std::string_view fill, std::string_view stroke) {
    add("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\" stroke=\"{}\" stroke-width=\"1.6\">", at.x, at.y,
        kMarkRadius - 0.8, fill, stroke);
    add("<title>{}</title></circle>\n", xml_escaped(says, " "));
  };
  const auto square = [&](std::string_view fill) {
    add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" fill=\"{}\">", at.x - kMarkRadius + 0.5,
        at.y - kMarkRadius + 0.5, kMarkRadius * 2 - 1, kMarkRadius * 2 - 1, fill);
    add("<title>{}</title></rect>\n", xml_escaped(says, " "));
  };
  switch (kind) {
    case StepKind::send: circle("#fff", kGrey); break;
    case StepKind::receive: circle(kBlue, kBlue); break;
    case StepKind::receive_reduce: circle(kOrange, kOrange); break;
    case StepKind::copy: square(kBlue); break;
    case StepKind::reduce: square(kOrange); break;
  }
}

void Drawing::draw_legend() {
  double x = kMargin + 12;
  const double y = round_y_.back() + 32;
  const auto entry = [&](StepKind kind, std::string_view words, double width) {
    draw_mark({x, y}, kind, std::string(words));
    add("<text class=\"sub\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x + 11, y + 4, words);
    x += width;
  };
  entry(StepKind::send, "send", 70);
  entry(StepKind::receive, "receive", 90);
  entry(StepKind::receive_reduce, "receive and reduce", 160);
  entry(StepKind::copy, "copy", 70);
  entry(StepKind::reduce, "reduce", 85);
  add("<line class=\"after\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>", x - 6, y, x + 20, y);
  add("<text class=\"sub\" x=\"{:.1f}\" y=\"{:.1f}\">waits for</text>\n", x + 27, y + 4);
  if (has_labels_) {
    add("<text class=\"sub\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x + 105, y + 4,
        plan_.parts_per_block == 1 ? "out 0: block" : "out 0.1: block.part");
  }
}

}  // namespace

Result<std::string> draw_svg(const Plan& plan) {
  WEFT_TRY_ASSIGN(const Graph graph, Graph::create(plan));
  if (plan.steps.size() > kMaxRanks || graph.num_nodes() > kMaxSteps) {
    return Error{ErrorCode::limit_exceeded,
                 fmt::format("drawing plan {}: {} ranks and {} steps are over {} and {}", plan.name, plan.steps.size(),
                             graph.num_nodes(), kMaxRanks, kMaxSteps),
                 "Print it as text instead"};
  }
  return Drawing{graph}.svg();
}

}  // namespace weft::collectives::plan
