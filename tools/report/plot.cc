#include "tools/report/plot.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "tools/report/html.h"

namespace weft::tools {
namespace {

// The plot's own units; the page scales it. The right margin holds the names of the lines.
constexpr double kWidth = 640;
constexpr double kHeight = 360;
constexpr double kLeft = 62;
constexpr double kRight = 128;
constexpr double kTop = 34;
constexpr double kBottom = 46;
constexpr double kLabelHeight = 15;
constexpr int kColors = 6;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  [[nodiscard]] bool is_empty() const { return low > high; }
};

/// The smallest of 1, 2, 2.5, 5 times a power of ten with which `span` has at most `most` steps.
double nice_step(double span, int most) {
  const double raw = span / most;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= raw) return factor * power;
  }
  return 10 * power;
}

class Canvas {
 public:
  explicit Canvas(const Plot& plot) : plot_(plot) {
    for (const PlotCurve& curve : plot.curves) {
      for (const PlotPoint& point : curve.points) {
        if (!is_drawable(point)) continue;
        x_.include(std::log2(point.x));
        y_.include(point.y);
        if (is_on_scale(point.low)) y_.include(point.low);
        if (is_on_scale(point.high)) y_.include(point.high);
      }
    }
    if (x_.is_empty()) return;
    for (const PlotLine& line : plot.lines) {
      if (is_on_scale(line.y)) y_.include(line.y);
    }
    if (x_.low == x_.high) x_ = {x_.low - 1, x_.high + 1};
    if (plot.y_scale == Scale::logarithmic) {
      y_ = {std::floor(std::log10(y_.low) + 1e-9), std::ceil(std::log10(y_.high) - 1e-9)};
      if (y_.low == y_.high) y_.high += 1;
    } else {
      step_ = nice_step(y_.high > 0 ? y_.high * 1.04 : 1, 6);
      y_ = {0, std::ceil((y_.high > 0 ? y_.high * 1.04 : 1) / step_ - 1e-9) * step_};
    }
  }

  std::string render() {
    out_ = fmt::format("<figure class=\"plot\"><figcaption>{}</figcaption>", xml_escaped(plot_.title));
    if (x_.is_empty()) return out_ + "<p class=\"empty\">Nothing was measured.</p></figure>\n";
    out_ += fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">", kWidth, kHeight,
                        xml_escaped(plot_.title));
    draw_legend();
    draw_x_axis();
    draw_y_axis();
    draw_lines();
    for (std::size_t i = 0; i < plot_.curves.size(); ++i) draw_curve(plot_.curves[i], static_cast<int>(i) % kColors);
    return out_ + "</svg></figure>\n";
  }

 private:
  [[nodiscard]] bool is_on_scale(double y) const {
    return std::isfinite(y) && (plot_.y_scale == Scale::linear ? y >= 0 : y > 0);
  }
  [[nodiscard]] bool is_drawable(const PlotPoint& point) const {
    return std::isfinite(point.x) && point.x > 0 && is_on_scale(point.y);
  }
  [[nodiscard]] double at_x(double bytes) const {
    return kLeft + (std::log2(bytes) - x_.low) / (x_.high - x_.low) * (kWidth - kLeft - kRight);
  }
  [[nodiscard]] double at_y(double value) const {
    const double on_scale = plot_.y_scale == Scale::logarithmic ? std::log10(value) : value;
    return kHeight - kBottom - (on_scale - y_.low) / (y_.high - y_.low) * (kHeight - kTop - kBottom);
  }

  void draw_legend() {
    double x = kLeft;
    for (std::size_t i = 0; i < plot_.curves.size(); ++i) {
      const std::string& label = plot_.curves[i].label;
      out_ += fmt::format(
          "<rect class=\"c{} swatch\" x=\"{:.1f}\" y=\"10\" width=\"14\" height=\"4\" rx=\"2\"/>"
          "<text class=\"legend\" x=\"{:.1f}\" y=\"16\">{}</text>",
          i % kColors, x, x + 20, xml_escaped(label));
      x += 20 + 7.0 * static_cast<double>(label.size()) + 18;
    }
  }

  void draw_x_axis() {
    const auto first = static_cast<int>(std::ceil(x_.low - 1e-9));
    const auto last = static_cast<int>(std::floor(x_.high + 1e-9));
    const int every = std::max(1, (last - first + 8) / 9);
    for (int power = first; power <= last; power += every) {
      const double x = at_x(std::exp2(power));
      out_ += fmt::format(
          "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>"
          "<text class=\"tick\" text-anchor=\"middle\" x=\"{0:.1f}\" y=\"{3}\">{4}</text>",
          x, kTop, kHeight - kBottom, kHeight - kBottom + 17,
          power < 0 || power > 63 ? "" : size_label(std::uint64_t{1} << power));
    }
    out_ += fmt::format("<text class=\"axis\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{}\">message size (bytes)</text>",
                        (kLeft + kWidth - kRight) / 2, kHeight - 8);
  }

  void draw_y_tick(double value) {
    out_ += fmt::format(
        "<line class=\"grid\" x1=\"{1}\" x2=\"{2}\" y1=\"{0:.1f}\" y2=\"{0:.1f}\"/>"
        "<text class=\"tick\" text-anchor=\"end\" x=\"{3}\" y=\"{4:.1f}\">{5}</text>",
        at_y(value), kLeft, kWidth - kRight, kLeft - 7, at_y(value) + 4, fmt::format("{:.6g}", value));
  }

  void draw_y_axis() {
    if (plot_.y_scale == Scale::logarithmic) {
      const int every = std::max(1, static_cast<int>(y_.high - y_.low + 7) / 8);
      for (int power = static_cast<int>(y_.low); power <= static_cast<int>(y_.high); power += every) {
        draw_y_tick(std::pow(10, power));
      }
    } else {
      for (int i = 0; i * step_ <= y_.high + step_ / 2; ++i) draw_y_tick(i * step_);
    }
    const double middle = (kTop + kHeight - kBottom) / 2;
    out_ += fmt::format(
        "<text class=\"axis\" text-anchor=\"middle\" transform=\"translate(14 {:.1f}) rotate(-90)\">{}"
        "</text>",
        middle, xml_escaped(plot_.y_label));
  }

  /// Labels stand right of their lines, pushed apart where lines are close, bottom to top.
  void draw_lines() {
    std::vector<PlotLine> lines;
    std::copy_if(plot_.lines.begin(), plot_.lines.end(), std::back_inserter(lines),
                 [&](const PlotLine& line) { return is_on_scale(line.y); });
    std::sort(lines.begin(), lines.end(), [](const PlotLine& a, const PlotLine& b) { return a.y < b.y; });
    double free_below = kHeight;
    for (const PlotLine& line : lines) {
      const double y = at_y(line.y);
      const double label_y = std::min(y + 4, free_below - kLabelHeight);
      free_below = label_y;
      const std::string label = line.label.size() > 20 ? line.label.substr(0, 19) + "…" : line.label;
      out_ += fmt::format("<line class=\"limit\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", kLeft,
                          kWidth - kRight, y, y);
      out_ += fmt::format("<text class=\"limit-label\" x=\"{}\" y=\"{:.1f}\" data-hover=\"{}\">{}</text>",
                          kWidth - kRight + 6, label_y, xml_escaped(line.label + "\n" + number_label(line.y)),
                          xml_escaped(label));
    }
  }

  void draw_curve(const PlotCurve& curve, int color) {
    std::string upper;
    std::string lower;
    std::string path;
    std::string marks;
    bool has_band = false;
    for (const PlotPoint& point : curve.points) {
      if (!is_drawable(point)) continue;
      const double x = at_x(point.x);
      const double low = is_on_scale(point.low) ? point.low : point.y;
      const double high = is_on_scale(point.high) ? point.high : point.y;
      has_band = has_band || low != high;
      upper += fmt::format("{:.1f},{:.1f} ", x, at_y(high));
      lower = fmt::format("{:.1f},{:.1f} ", x, at_y(low)) + lower;
      path += fmt::format("{:.1f},{:.1f} ", x, at_y(point.y));
      // A wide invisible ring makes the dot easy to hit.
      marks += fmt::format(
          "<circle class=\"c{2} dot\" cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"3.2\"/>"
          "<circle class=\"target\" cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"11\" data-hover=\"{3}\"/>",
          x, at_y(point.y), color, xml_escaped(curve.label + "\n" + point.hover));
    }
    if (has_band) out_ += fmt::format("<polygon class=\"c{} band\" points=\"{}{}\"/>", color, upper, lower);
    out_ += fmt::format("<polyline class=\"c{} curve\" points=\"{}\"/>", color, path) + marks;
  }

  const Plot& plot_;
  Range x_;
  Range y_;
  double step_ = 1;
  std::string out_;
};

}  // namespace

std::string render_svg(const Plot& plot) { return Canvas(plot).render(); }

}  // namespace weft::tools
