#include <fmt/core.h>

#include <cmath>
#include <string_view>

#include "base/text.h"
#include "tools/report/report.h"

namespace weft::tools {
namespace {

/// Builds a JSON text in the order of the calls; the caller keeps keys and nesting right.
class Writer {
 public:
  Writer& open(char bracket) {
    separate();
    text_ += bracket;
    is_first_ = true;
    ++depth_;
    return *this;
  }
  Writer& close(char bracket) {
    --depth_;
    text_ += bracket;
    is_first_ = false;
    return *this;
  }
  Writer& key(std::string_view name) {
    separate();
    text_ += json_string(name) + ": ";
    is_value_ = true;
    return *this;
  }
  Writer& value(std::string_view text) { return raw(json_string(text)); }
  Writer& value(const std::string& text) { return raw(json_string(text)); }
  Writer& value(std::uint64_t number) { return raw(fmt::format("{}", number)); }
  Writer& value(std::uint32_t number) { return raw(fmt::format("{}", number)); }
  Writer& value(bool truth) { return raw(truth ? "true" : "false"); }
  Writer& value(double number) { return raw(std::isfinite(number) ? fmt::format("{:.6g}", number) : "null"); }
  Writer& value(const std::optional<double>& number) { return number ? value(*number) : raw("null"); }
  template <class T>
  Writer& field(std::string_view name, const T& member) {
    return key(name).value(member);
  }
  std::string take() && { return std::move(text_) + "\n"; }

 private:
  Writer& raw(std::string_view text) {
    separate();
    text_ += text;
    return *this;
  }
  /// A line per member down to the rows of a list, which stay on one line each.
  void separate() {
    if (!is_value_ && !text_.empty()) {
      if (!is_first_) text_ += ",";
      if (depth_ <= 2) {
        text_ += '\n';
        text_.append(depth_, ' ');
      } else if (!is_first_) {
        text_ += ' ';
      }
    }
    is_first_ = false;
    is_value_ = false;
  }

  std::string text_;
  std::size_t depth_ = 0;
  bool is_first_ = true;
  bool is_value_ = false;
};

template <class Items, class Write>
void list(Writer& json, std::string_view name, const Items& items, Write write) {
  json.key(name).open('[');
  for (const auto& item : items) {
    json.open('{');
    write(item);
    json.close('}');
  }
  json.close(']');
}

void write_results(Writer& json, const Report& report) {
  json.key("results").open('[');
  for (const Series& series : report.series) {
    for (const Measurement& m : series.measurements) {
      json.open('{').field("collective", series.collective).field("in_place", series.in_place);
      json.field("bytes", m.size_bytes).field("iterations", m.iterations).field("median_us", m.median_us);
      json.field("p99_us", m.p99_us).field("min_us", m.min_us).field("algbw_gbs", m.algbw_gbs);
      json.field("busbw_gbs", m.busbw_gbs).field("wrong", m.wrong).close('}');
    }
  }
  json.close(']');
}

}  // namespace

std::string to_json(const Report& report) {
  Writer json;
  json.open('{').field("schema", std::string_view("weft-results-1")).field("title", report.title);
  json.field("commit", report.commit).field("started_at", report.started_at).field("type", report.data_type);
  json.field("reduction", report.reduction).field("ranks", report.ranks).field("warm_ups", report.warm_ups);
  json.field("verified", report.is_verified);
  list(json, "machine", report.machine,
       [&](const Fact& fact) { json.field("name", fact.name).field("value", fact.value); });
  list(json, "hosts", report.hosts, [&](const ReportHost& host) {
    json.field("name", host.name).key("ranks").open('[');
    for (const std::uint32_t rank : host.ranks) json.value(rank);
    json.close(']');
  });
  list(json, "pairs", report.pairs, [&](const PairTransport& pair) {
    json.field("from", pair.from).field("to", pair.to).field("transport", pair.transport);
    json.field("reason", pair.reason);
  });
  list(json, "algorithms", report.algorithms, [&](const AlgorithmChoice& choice) {
    json.field("collective", choice.collective).field("first_bytes", choice.first_bytes);
    json.field("last_bytes", choice.last_bytes).field("algorithm", choice.algorithm).field("reason", choice.reason);
  });
  write_results(json, report);
  list(json, "limits", report.limits, [&](const Limit& limit) {
    json.field("name", limit.name).field("how", limit.how).field("bandwidth_gbs", limit.bandwidth_gbs);
    json.field("latency_us", limit.latency_us);
  });
  list(json, "workloads", report.workloads, [&](const WorkloadRun& run) {
    json.field("name", run.name).field("step_median_us", run.step_median_us).field("step_p99_us", run.step_p99_us);
    list(json, "steps", run.steps, [&](const WorkloadStep& step) {
      json.field("label", step.label).field("collective", step.collective).field("bytes", step.size_bytes);
      json.field("median_us", step.median_us).field("p99_us", step.p99_us);
    });
  });
  json.key("notes").open('[');
  for (const std::string& note : report.notes) json.value(note);
  json.close(']').close('}');
  return std::move(json).take();
}

}  // namespace weft::tools
