// A data check's report as text and as JSON.
#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "base/unicode.h"
#include "engine/train/check_data.h"

namespace phalanx::engine::train {
namespace {

std::string_view word(data::Severity severity) {
  return severity == data::Severity::kError ? "error" : severity == data::Severity::kWarning ? "warning" : "note";
}

std::string range_of(size_t bucket) {
  if (bucket <= 1) return fmt::format("{}", bucket);
  return fmt::format("{}–{}", int64_t{1} << (bucket - 1), (int64_t{1} << bucket) - 1);
}

std::string text_of(const data::DataFinding& finding) {
  std::string text = fmt::format("{}: {} [{}]", word(finding.severity), finding.what, finding.code);
  if (finding.count > 1) text += base::counted(": {} times", finding.count);
  text += '\n';
  for (const std::string& place : finding.places) text += fmt::format("  {}\n", base::printable(place, 400));
  const auto shown = static_cast<int64_t>(finding.places.size());
  if (finding.count > shown) text += fmt::format("  and {} more\n", finding.count - shown);
  return text;
}

std::string text_of(const CheckedSet& set) {
  const data::WalkReport& r = set.report;
  std::string text = base::counted("{}: {} items, {} tokens, {} targets", set.name, r.items, r.tokens, r.targets);
  if (r.largest_token >= 0) text += fmt::format(", largest token {}", r.largest_token);
  text += '\n';
  if (r.longest == r.shortest) return text + (r.longest > 0 ? fmt::format("  every item has length {}\n", r.longest) : "");
  for (size_t bucket = 0; bucket < r.lengths.size(); ++bucket)
    if (r.lengths[bucket] > 0) text += fmt::format("  length {:>12}  {:>12}\n", range_of(bucket), r.lengths[bucket]);
  return text;
}

base::Json json_of(const std::vector<data::DataFinding>& findings) {
  base::Json list = base::Json::array();
  for (const data::DataFinding& finding : findings)
    list.push_back({{"code", finding.code},
                    {"severity", std::string(word(finding.severity))},
                    {"what", finding.what},
                    {"count", finding.count},
                    {"places", finding.places}});
  return list;
}

base::Json json_of(const CheckedSet& set) {
  const data::WalkReport& r = set.report;
  base::Json lengths = base::Json::array();
  for (size_t bucket = 0; bucket < r.lengths.size(); ++bucket) {
    const int64_t from = bucket == 0 ? 0 : int64_t{1} << (bucket - 1), to = bucket == 0 ? 0 : (int64_t{1} << bucket) - 1;
    if (r.lengths[bucket] > 0) lengths.push_back({{"from", from}, {"to", to}, {"items", r.lengths[bucket]}});
  }
  return {{"name", set.name},
          {"items", r.items},
          {"tokens", r.tokens},
          {"targets", r.targets},
          {"largest_token", r.largest_token},
          {"shortest", r.shortest},
          {"longest", r.longest},
          {"lengths", lengths},
          {"findings", json_of(r.findings)}};
}

}  // namespace

std::string to_text(const DataReport& report) {
  std::string text;
  int64_t errors = 0, warnings = 0;
  auto show = [&](const std::vector<data::DataFinding>& findings) {
    for (const data::DataFinding& finding : findings) {
      text += text_of(finding);
      errors += finding.severity == data::Severity::kError ? 1 : 0;
      warnings += finding.severity == data::Severity::kWarning ? 1 : 0;
    }
  };
  constexpr size_t kFiles = 20;
  for (size_t i = 0; i < report.files.size() && i < kFiles; ++i) {
    const data::FileOfSet& file = report.files[i];
    text += fmt::format("{}: {}, {}", base::printable(file.path, 400), to_text(file.format), base::format_bytes(file.bytes));
    text += file.items < 0 ? "\n" : base::counted(", {} items\n", file.items);
  }
  if (report.files.size() > kFiles) text += base::counted("and {} more files\n", report.files.size() - kFiles);
  show(report.findings);
  for (const CheckedSet& set : report.sets) {
    text += text_of(set);
    show(set.report.findings);
  }
  for (const WorldSteps& steps : report.worlds) {
    text += fmt::format("{} rank{}: ", steps.world, steps.world == 1 ? "" : "s");
    if (steps.steps == 0) text += fmt::format("impossible: {}\n", steps.batch);
    else if (steps.fewest_own == steps.most_own) text += base::counted("{} steps per epoch; {}\n", steps.steps, steps.batch);
    else text += base::counted("{} steps per epoch, some ranks have rows in {}; {}\n", steps.steps, steps.fewest_own, steps.batch);
  }
  text += report.clean() ? "the data can be trained on" : base::counted("the data cannot be trained on: {} kinds of error", errors);
  return text + (warnings > 0 ? base::counted(", {} kinds of warning\n", warnings) : "\n");
}

base::Json to_json(const DataReport& report) {
  base::Json files = base::Json::array(), sets = base::Json::array(), worlds = base::Json::array();
  for (const data::FileOfSet& file : report.files) {
    base::Json one{{"path", file.path}, {"format", std::string(to_text(file.format))}, {"bytes", file.bytes}};
    if (file.items >= 0) one["items"] = file.items;
    if (file.vocabulary > 0) one["vocabulary"] = file.vocabulary;
    files.push_back(std::move(one));
  }
  for (const CheckedSet& set : report.sets) sets.push_back(json_of(set));
  for (const WorldSteps& steps : report.worlds)
    worlds.push_back({{"ranks", steps.world},
                      {"steps", steps.steps},
                      {"fewest_own", steps.fewest_own},
                      {"most_own", steps.most_own},
                      {"batch", steps.batch}});
  return {{"schema", 1},  {"clean", report.clean()}, {"files", files}, {"findings", json_of(report.findings)},
          {"sets", sets}, {"worlds", worlds}};
}

}  // namespace phalanx::engine::train
