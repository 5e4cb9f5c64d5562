#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/text.h"
#include "tools/report/html.h"
#include "tools/report/page.h"
#include "tools/report/plot.h"
#include "tools/report/report.h"

namespace weft::tools {
namespace {

/// A table from texts that are escaped here. Columns named with a leading '#' hold numbers.
std::string table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<div class=\"wide\"><table><thead><tr>";
  const auto is_number = [&](std::size_t column) { return header[column].starts_with('#'); };
  for (std::size_t i = 0; i < header.size(); ++i) {
    out += is_number(i) ? fmt::format("<th class=\"n\">{}</th>", xml_escaped(header[i].substr(1)))
                        : fmt::format("<th>{}</th>", xml_escaped(header[i]));
  }
  out += "</tr></thead><tbody>\n";
  for (const auto& row : rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool is_bad = header[i] == "#wrong" && row[i] != "0" && row[i] != "–";
      out +=
          fmt::format("<td class=\"{}{}\">{}</td>", is_number(i) ? "n" : "", is_bad ? " bad" : "", xml_escaped(row[i]));
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string section(std::string_view title, const std::string& content) {
  return fmt::format("<section><h2>{}</h2>\n{}</section>\n", xml_escaped(title), content);
}

std::string placement_of(const Series& series) { return series.in_place ? "in place" : "out of place"; }

std::vector<std::string> collectives_of(const Report& report) {
  std::vector<std::string> names;
  for (const Series& series : report.series) {
    if (std::find(names.begin(), names.end(), series.collective) == names.end()) names.push_back(series.collective);
  }
  return names;
}

std::string cards(const Report& report) {
  std::uint64_t wrong = 0;
  double busbw = -1;
  double latency = -1;
  for (const Series& series : report.series) {
    for (const Measurement& m : series.measurements) {
      wrong += m.wrong;
      if (std::isfinite(m.busbw_gbs)) busbw = std::max(busbw, m.busbw_gbs);
      if (std::isfinite(m.median_us) && (latency < 0 || m.median_us < latency)) latency = m.median_us;
    }
  }
  const auto card = [](const std::string& value, std::string_view label, std::string_view kind = "") {
    return fmt::format("<div class=\"card\"><b class=\"{}\">{}</b><span>{}</span></div>", kind, xml_escaped(value),
                       label);
  };
  std::string out = "<div class=\"cards\">";
  out += card(fmt::format("{}", report.ranks),
              report.hosts.size() == 1 ? "ranks on one host" : fmt::format("ranks on {} hosts", report.hosts.size()));
  out += card(number_label(busbw) + " GB/s", "highest bus bandwidth");
  out += card(time_label(latency), "shortest median time");
  if (!report.is_verified) {
    out += card("not checked", "results");
  } else {
    out += wrong == 0 ? card("all right", "every result checked", "good")
                      : card(fmt::format("{}", wrong), "WRONG VALUES", "bad");
  }
  return out + "</div>\n";
}

std::string plots_of(const Report& report, const std::string& collective) {
  Plot bandwidth{collective + ": bus bandwidth", "GB/s", Scale::linear, {}, {}};
  Plot latency{collective + ": time per operation, median to 99th percentile", "µs", Scale::logarithmic, {}, {}};
  for (const Series& series : report.series) {
    if (series.collective != collective) continue;
    PlotCurve rate{placement_of(series), {}};
    PlotCurve time = rate;
    for (const Measurement& m : series.measurements) {
      const auto x = static_cast<double>(m.size_bytes);
      const std::string hover = fmt::format("{} bytes ({})\n{} GB/s bus, {} GB/s algorithm\nmedian {}, p99 {}",
                                            m.size_bytes, size_label(m.size_bytes), number_label(m.busbw_gbs),
                                            number_label(m.algbw_gbs), time_label(m.median_us), time_label(m.p99_us));
      rate.points.push_back({x, m.busbw_gbs, m.busbw_gbs, m.busbw_gbs, hover});
      time.points.push_back({x, m.median_us, m.median_us, m.p99_us, hover});
    }
    bandwidth.curves.push_back(std::move(rate));
    latency.curves.push_back(std::move(time));
  }
  for (const Limit& limit : report.limits) {
    if (limit.bandwidth_gbs) bandwidth.lines.push_back({limit.name, *limit.bandwidth_gbs});
    if (limit.latency_us) latency.lines.push_back({limit.name, *limit.latency_us});
  }
  return "<div class=\"plots\">" + render_svg(bandwidth) + render_svg(latency) + "</div>\n";
}

std::string results_of(const Report& report, const std::string& collective) {
  std::vector<std::vector<std::string>> rows;
  for (const Series& series : report.series) {
    if (series.collective != collective) continue;
    for (const Measurement& m : series.measurements) {
      rows.push_back({size_label(m.size_bytes), placement_of(series), time_label(m.median_us), time_label(m.p99_us),
                      time_label(m.min_us), number_label(m.algbw_gbs), number_label(m.busbw_gbs),
                      fmt::format("{}", m.iterations), report.is_verified ? fmt::format("{}", m.wrong) : "–"});
    }
  }
  return "<h3>Results</h3>" + table({"#size", "placement", "#median", "#p99", "#shortest", "#algorithm GB/s",
                                     "#bus GB/s", "#iterations", "#wrong"},
                                    rows);
}

std::string workload(const WorkloadRun& run) {
  double longest = 0;
  for (const WorkloadStep& step : run.steps) {
    for (const double time : {step.median_us, step.p99_us}) {
      if (std::isfinite(time)) longest = std::max(longest, time);
    }
  }
  const auto percent = [&](double time) {
    return longest > 0 && std::isfinite(time) ? std::clamp(100 * time / longest, 0.0, 100.0) : 0.0;
  };
  std::string out = fmt::format(
      "<p class=\"sub\">Communication of one step: {} (p99 {}), {} operations. Pale: 99th "
      "percentile.</p><div class=\"wide\"><div class=\"bars\">",
      time_label(run.step_median_us), time_label(run.step_p99_us), run.steps.size());
  for (const WorkloadStep& step : run.steps) {
    out += fmt::format(
        "<span title=\"{0}\">{0}</span><span class=\"n\">{1}</span><div class=\"track\" data-hover=\"{2}\">"
        "<i class=\"p99\" style=\"width:{3:.2f}%\"></i><i style=\"width:{4:.2f}%\"></i></div>"
        "<span>{5}</span>\n",
        xml_escaped(step.label), size_label(step.size_bytes),
        xml_escaped(fmt::format("{}\n{}, {} bytes\nmedian {}, p99 {}", step.label, step.collective, step.size_bytes,
                                time_label(step.median_us), time_label(step.p99_us))),
        percent(step.p99_us), percent(step.median_us), time_label(step.median_us));
  }
  return out + "</div></div>\n";
}

std::string surroundings(const Report& report) {
  std::vector<std::vector<std::string>> rows;
  for (const Fact& fact : report.machine) rows.push_back({fact.name, fact.value});
  std::string out = rows.empty() ? "" : section("Machine", table({"what", "value"}, rows));

  rows.clear();
  for (const ReportHost& host : report.hosts) {
    std::string ranks;
    for (const std::uint32_t rank : host.ranks) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
    rows.push_back({host.name, ranks});
  }
  if (!rows.empty()) out += section("Hosts", table({"host", "ranks"}, rows));

  rows.clear();
  for (const PairTransport& pair : report.pairs) {
    rows.push_back({fmt::format("{} → {}", pair.from, pair.to), pair.transport, pair.reason});
  }
  if (!rows.empty()) out += section("Transports", table({"ranks", "transport", "why"}, rows));

  rows.clear();
  for (const AlgorithmChoice& choice : report.algorithms) {
    rows.push_back({choice.collective,
                    fmt::format("{} to {}", size_label(choice.first_bytes), size_label(choice.last_bytes)),
                    choice.algorithm, choice.reason});
  }
  if (!rows.empty()) out += section("Algorithms", table({"collective", "sizes", "algorithm", "why"}, rows));

  rows.clear();
  for (const Limit& limit : report.limits) {
    rows.push_back({limit.name, limit.bandwidth_gbs ? number_label(*limit.bandwidth_gbs) : "–",
                    limit.latency_us ? time_label(*limit.latency_us) : "–", limit.how});
  }
  if (!rows.empty()) out += section("Limits", table({"limit", "#GB/s", "#latency", "how it was measured"}, rows));
  return out;
}

}  // namespace

std::string render_html(const Report& report) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><title>{0}</title><style>{1}</style></head><body><main>\n"
      "<h1>{0}</h1><p class=\"sub\">{2} · commit {3} · {4}, {5} · {6} warm-up iterations</p>\n",
      xml_escaped(report.title), kPageStyle, xml_escaped(report.started_at), xml_escaped(report.commit),
      xml_escaped(report.data_type), xml_escaped(report.reduction), report.warm_ups);
  out += cards(report);
  for (const std::string& collective : collectives_of(report)) {
    out += section(collective, plots_of(report, collective) + results_of(report, collective));
  }
  for (const WorkloadRun& run : report.workloads) out += section("Workload: " + run.name, workload(run));
  out += surroundings(report);
  if (!report.notes.empty()) {
    std::string notes = "<div class=\"wide\"><ul>";
    for (const std::string& note : report.notes) notes += fmt::format("<li>{}</li>", xml_escaped(note));
    out += section("Notes", notes + "</ul></div>\n");
  }
  return out + fmt::format("</main><div id=\"tip\"></div><script>{}</script></body></html>\n", kPageScript);
}

}  // namespace weft::tools
