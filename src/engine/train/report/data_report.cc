// A data check's report as text and as JSON.
#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"
#include "engine/train/check_data.h"
#include "words/said.h"

namespace phalanx::engine::train {
namespace {

using base::Language;
using words::tr;

std::string_view word(data::Severity severity) {
  return severity == data::Severity::kError ? "error" : severity == data::Severity::kWarning ? "warning" : "note";
}

words::Text shown(data::Severity severity) {
  return severity == data::Severity::kError     ? words::Text{"error##of data"}
         : severity == data::Severity::kWarning ? words::Text{"warning##of data"}
                                                : words::Text{"note##of data"};
}

std::string range_of(size_t bucket) {
  if (bucket <= 1) return fmt::format("{}", bucket);
  return fmt::format("{}–{}", int64_t{1} << (bucket - 1), (int64_t{1} << bucket) - 1);
}

std::string text_of(const data::DataFinding& finding, Language language) {
  std::string text =
      tr(language, "{}: {} [{}]##a finding about data", shown(finding.severity), words::said_in(language, finding.what), finding.code);
  if (finding.count > 1) text += tr(language, ": {} times##of a finding", finding.count);
  text += '\n';
  for (const std::string& place : finding.places) text += fmt::format("  {}\n", base::printable(words::said_in(language, place), 400));
  const auto named = static_cast<int64_t>(finding.places.size());
  if (finding.count > named) text += tr(language, "  and {} more\n", finding.count - named);
  return text;
}

std::string text_of(const CheckedSet& set, Language language) {
  const data::WalkReport& r = set.report;
  std::string text = tr(language, "{}: {} items, {} tokens, {} targets", words::said_in(language, set.name), r.items, r.tokens, r.targets);
  if (r.largest_token >= 0) text += tr(language, ", largest token {}", r.largest_token);
  text += '\n';
  if (r.longest == r.shortest) return text + (r.longest > 0 ? tr(language, "  every item has length {}\n", r.longest) : "");
  for (size_t bucket = 0; bucket < r.lengths.size(); ++bucket)
    if (r.lengths[bucket] > 0) text += tr(language, "  length {:>12}  {:>12}\n", range_of(bucket), r.lengths[bucket]);
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

std::string to_text(const DataReport& report, Language language) {
  std::string text;
  int64_t errors = 0, warnings = 0;
  auto show = [&](const std::vector<data::DataFinding>& findings) {
    for (const data::DataFinding& finding : findings) {
      text += text_of(finding, language);
      errors += finding.severity == data::Severity::kError ? 1 : 0;
      warnings += finding.severity == data::Severity::kWarning ? 1 : 0;
    }
  };
  constexpr size_t kFiles = 20;
  for (size_t i = 0; i < report.files.size() && i < kFiles; ++i) {
    const data::FileOfSet& file = report.files[i];
    text += fmt::format("{}: {}, {}", base::printable(file.path, 400), to_text(file.format), base::format_bytes(file.bytes));
    text += file.items < 0 ? "\n" : tr(language, ", {} items\n", file.items);
  }
  if (report.files.size() > kFiles) text += tr(language, "and {} more files\n", report.files.size() - kFiles);
  show(report.findings);
  for (const CheckedSet& set : report.sets) {
    text += text_of(set, language);
    show(set.report.findings);
  }
  for (const WorldSteps& steps : report.worlds) {
    const std::string batch = words::said_in(language, steps.batch);
    text += tr(language, "{} ranks: ", steps.world);
    if (steps.steps == 0) text += tr(language, "impossible: {}\n", batch);
    else if (steps.fewest_own == steps.most_own) text += tr(language, "{} steps per epoch; {}\n", steps.steps, batch);
    else text += tr(language, "{} steps per epoch, some ranks have rows in {}; {}\n", steps.steps, steps.fewest_own, batch);
  }
  text += report.clean() ? tr(language, "the data can be trained on")
                         : tr(language, "the data cannot be trained on: {} kinds of error", errors);
  return text + (warnings > 0 ? tr(language, ", {} kinds of warning\n", warnings) : "\n");
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
