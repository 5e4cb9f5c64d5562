#pragma once

#include <string>

#include "collectives/plan/plan.h"

namespace weft::collectives::plan {

/// A plan as a picture (SVG, self-contained): ranks are lanes that run down, steps are marks on them in rounds of
/// transfers, transfers are arrows in the colour of what the receiver does. Pointing at a mark or an arrow says what it
/// is. Thread: any. Errors: invalid_argument — the plan has no order to draw (see Graph::create);
///         limit_exceeded — over 64 ranks or 8192 steps; the text form shows them.
Result<std::string> draw_svg(const Plan& plan);

}  // namespace weft::collectives::plan
