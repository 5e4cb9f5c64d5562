// An algorithm of your own, as a plan: everyone sends to rank 0, which adds and hands the sum out again.
// Weft verifies it (bounds, matching, no race, right result) before the first byte moves; then it runs like any other.
// `weft run -n 3 -- build/release/examples/own_plan`
#include <cstdio>
#include <string>
#include <vector>

#include <weft/weft.hpp>

namespace {

int failed(const char* what, const weft::Failure& failure) {
  std::fprintf(stderr, "%s: %s\n", what, failure.text.c_str());
  return 1;
}

/// A star around rank 0. Transfer r-1 goes in from rank r, transfer n-1 + r-1 goes out to it.
std::string star(unsigned n) {
  std::string hub, spokes;
  for (unsigned r = 1; r < n; ++r) {
    const std::string in = std::to_string(r - 1), out = std::to_string(n - 1 + r - 1), rank = std::to_string(r);
    const std::string sum = r == 1 ? "input[0.0]" : "output[0.0]";  // The first sum takes rank 0's own values.
    hub += "  " + in + " receive_reduce t" + in + " output[0.0] = " + sum + " op from " + rank +
           (r > 1 ? " after " + std::to_string(r - 2) : "") + "\n";
    spokes += "rank " + rank + " scratch 0\n  0 send t" + in + " input[0.0] to 0\n  1 receive t" + out +
              " output[0.0] from 0\n";
  }
  for (unsigned r = 1; r < n; ++r) {
    const std::string out = std::to_string(n - 1 + r - 1);
    hub += "  " + out + " send t" + out + " output[0.0] to " + std::to_string(r) + " after " + std::to_string(n - 2) +
           "\n";
  }
  return "weft-plan 1\nname star\ncollective all_reduce\nranks " + std::to_string(n) +
         "\nroot 0\nplacement out_of_place\nparts 1\nlanes 1\ntransfers " + std::to_string(2 * (n - 1)) +
         "\nrank 0 scratch 0\n" + hub + spokes;
}

}  // namespace

int main() {
  auto communicator = weft::Communicator::create();
  if (!communicator) return failed("create", communicator.failure());
  const unsigned n = communicator->size();
  if (n < 2) return std::fprintf(stderr, "this example takes two ranks or more: weft run -n 3\n"), 2;

  auto plan = weft::Plan::parse(star(n));
  if (!plan) return failed("plan", plan.failure());
  std::vector<float> values(1000, static_cast<float>(communicator->rank() + 1)), sums(values.size());
  auto request = communicator->start_plan(*plan, values.data(), sums.data(), values.size());
  if (!request) return failed("start", request.failure());
  if (auto done = request->wait(); !done) return failed("wait", done.failure());

  const float wanted = static_cast<float>(n * (n + 1)) / 2;
  for (const float sum : sums) {
    if (sum != wanted) return std::fprintf(stderr, "rank %u: %g, not %g\n", communicator->rank(), sum, wanted), 1;
  }
  std::printf("rank %u of %u: the sum by our own plan is %g\n", communicator->rank(), n, sums[0]);
  return 0;
}
