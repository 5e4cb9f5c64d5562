#include "tools/bench/measure.h"

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "tools/bench/description.h"

namespace weft::tools {
Result<std::uint64_t> check_once(weft_communicator_t* communicator, CollectiveCall& operation) {
  operation.prepare();
  WEFT_TRY(checked(weft_barrier(communicator)));
  WEFT_TRY(checked(operation.run()));
  const std::uint64_t wrong = operation.count_wrong();
  // No rank may go on to write what another one still reads.
  WEFT_TRY(checked(weft_barrier(communicator)));
  return wrong;
}

Result<std::uint64_t> sum_over_ranks(weft_communicator_t* communicator, std::uint64_t own) {
  WEFT_TRY(checked(weft_all_reduce(communicator, &own, &own, 1, WEFT_U64, WEFT_SUM)));
  return own;
}

Result<Measured> time_calls(weft_communicator_t* communicator, const BenchOptions& options,
                            const std::function<weft_status_t()>& once) {
  const auto timed = [&](std::vector<double>& times) -> Status {
    const Clock& clock = steady_clock();
    for (double& time : times) {
      const Nanos start = clock.now();
      if (const weft_status_t status = once(); status != WEFT_SUCCESS) return checked(status);
      time = static_cast<double>((clock.now() - start).count());
    }
    return {};
  };
  std::vector<double> warm_up(std::max<std::uint64_t>(options.warm_ups, options.iterations == 0 ? 1 : 0));
  WEFT_TRY(timed(warm_up));
  std::uint64_t iterations = options.iterations;
  if (iterations == 0) {
    // The first calls connect, plan and fault pages; the smallest of the rest says how long a call takes.
    double each_ns = *std::min_element(warm_up.begin(), warm_up.end());
    WEFT_TRY(checked(weft_all_reduce(communicator, &each_ns, &each_ns, 1, WEFT_F64, WEFT_MAX)));
    iterations = iterations_for(each_ns, options.budget);
  }
  std::vector<double> times(iterations);
  WEFT_TRY(checked(weft_barrier(communicator)));
  WEFT_TRY(timed(times));
  WEFT_TRY(checked(weft_all_reduce(communicator, times.data(), times.data(), times.size(), WEFT_F64, WEFT_MAX)));
  Measured measured;
  measured.times = times_of(std::move(times));
  measured.iterations = iterations;
  return measured;
}

Result<Measured> measure(weft_communicator_t* communicator, const BenchOptions& options, CollectiveCall& operation) {
  std::uint64_t wrong = 0;
  operation.prepare();
  if (options.is_checked) {
    WEFT_TRY_ASSIGN(wrong, check_once(communicator, operation));
  }
  WEFT_TRY_ASSIGN(Measured measured, time_calls(communicator, options, [&] { return operation.run(); }));
  if (options.is_checked) {
    WEFT_TRY_ASSIGN(const std::uint64_t later, check_once(communicator, operation));
    wrong += later;
  }
  WEFT_TRY_ASSIGN(measured.wrong, sum_over_ranks(communicator, wrong));
  return measured;
}

}  // namespace weft::tools
