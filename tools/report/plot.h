#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::tools {

/// One point of a curve; `low` and `high` bound its band (equal to `y` for none).
struct PlotPoint {
  double x = 0;
  double y = 0;
  double low = 0;
  double high = 0;
  std::string hover;  ///< Plain text, lines separated by newlines.
};

struct PlotCurve {
  std::string label;
  std::vector<PlotPoint> points;
};

/// A dashed horizontal line.
struct PlotLine {
  std::string label;
  double y = 0;
};

enum class Scale : std::uint8_t { linear, logarithmic };

/// A plot over message sizes (x logarithmic, in bytes).
struct Plot {
  std::string title;
  std::string y_label;
  Scale y_scale = Scale::linear;
  std::vector<PlotCurve> curves;
  std::vector<PlotLine> lines;
};

/// An inline SVG element, coloured by the page's style (classes c0 .. c5). Points that are not finite, and with a
/// logarithmic scale those that are not positive, are left out; if none is left the result says so. Thread: any.
std::string render_svg(const Plot& plot);

}  // namespace weft::tools
