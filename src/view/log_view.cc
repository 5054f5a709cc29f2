#include "view/log_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/unicode.h"
#include "base/wrap.h"
#include "codes/code.h"
#include "diagnosis/logs/advice.h"
#include "view/explain_view.h"
#include "view/speech.h"

namespace phalanx::view {
namespace {

using base::Language;
using diagnosis::LogCause;
using diagnosis::LogEvidence;
using diagnosis::LogVerdict;
using words::Text;
using words::tr;

constexpr Text kEvidence{"Evidence"};
constexpr Text kWhy{"Why"};
constexpr Text kNext{"What to do"};
constexpr Text kInGeneral{"What to do in general"};
constexpr Text kOthers{"Also seen"};
constexpr Text kFollowed{"Consequences"};
constexpr Text kRead{"Read"};
constexpr size_t kTextBytes = 320;

inline constexpr Phrase<std::string_view> kRank{"rank {}"};
inline constexpr Phrase<int> kLocalRank{"local rank {}"};
inline constexpr Phrase<std::string_view> kOnHost{"on {}"};
inline constexpr Phrase<size_t, std::string_view> kFiles{"{} files, {} lines"};
inline constexpr Phrase<std::string_view> kOneFile{"1 file, {} lines"};
inline constexpr Phrase<std::string_view> kRanksSeen{"lines of rank {}"};
inline constexpr Phrase<std::string_view, int> kRanksMissing{"no lines of rank {} (of {})"};
inline constexpr Phrase<uint64_t> kCut{"{} lines longer than 64 KiB were truncated"};
inline constexpr Phrase<> kNothing{"no cause of failure was found"};

std::string grouped(uint64_t number) {
  std::string digits = std::to_string(number), out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string where(const LogVerdict& verdict, const LogEvidence& evidence) {
  const std::string& name = verdict.files[evidence.file].name;
  return fmt::format("{}:{}", base::printable(name == "-" ? "stdin" : name), evidence.line);
}

void add_wrapped(std::string& out, std::string_view text, size_t columns, std::string_view indent = "  ") {
  for (const std::string& line : base::wrap(text, columns - indent.size()))
    out += line.empty() ? "\n" : fmt::format("{}{}\n", indent, line);
}

// A line of a section: its blanks stay where it fits; broken, it goes on below its first word.
void add_row(std::string& out, std::string_view text, size_t columns) {
  size_t indent = std::min({text.find_first_not_of(' '), text.size(), size_t{8}});
  if (base::display_width(text) + 2 <= columns) out += fmt::format("  {}\n", text);
  else add_wrapped(out, text.substr(indent), columns, std::string(2 + indent, ' '));
}

void heading(std::string& out, Text words, Language language) { out += fmt::format("\n{}\n", words.in(language)); }

// "rank 3, 5 on gpu02"; empty where nothing is known.
std::string who(const LogCause& cause, const Speech& say) {
  std::vector<std::string> parts;
  if (!cause.ranks.empty()) parts.push_back(say(kRank, base::format_ranges(cause.ranks)));
  else if (cause.local_rank >= 0) parts.push_back(say(kLocalRank, cause.local_rank));
  if (!cause.host.empty()) parts.push_back(say(kOnHost, base::printable(cause.host)));
  return base::join(parts, " ");
}

void add_evidence(std::string& out, const LogVerdict& verdict, const LogEvidence& evidence) {
  out += fmt::format("  {}: {}\n", where(verdict, evidence), base::printable(evidence.text, kTextBytes));
}

void add_cause(std::string& out, const LogVerdict& verdict, const Speech& say, size_t columns) {
  const LogCause& cause = *verdict.cause;
  const codes::Code& page = codes::get(cause.code);
  for (const std::string& line : base::wrap(fmt::format("{}: {}", cause.code, page.title.in(say.language())), columns)) out += line + "\n";
  std::string line = who(cause, say), detail = cause.detail.in(say.language());
  if (!line.empty() && !detail.empty()) line += tr(say.language(), "; ");
  line += base::printable(detail, 600);
  if (!line.empty()) add_wrapped(out, line, columns);
  if (!cause.evidence.empty()) heading(out, kEvidence, say.language());
  for (const LogEvidence& evidence : cause.evidence) add_evidence(out, verdict, evidence);
  // What is known of the message comes first: the page of the code is about all messages of its kind.
  if (!cause.advice.empty()) heading(out, kNext, say.language());
  for (const doctor::Words& one : cause.advice) add_wrapped(out, one.in(say.language()), columns);
  if (!cause.advice.empty() && diagnosis::says_little(cause.code)) return;
  add_explanation(out, kWhy, page.why.in(say.language()), say.language(), columns);
  add_explanation(out, cause.advice.empty() ? kNext : kInGeneral, codes::fill_page(page.fix.in(say.language()), cause.observed),
                  say.language(), columns);
}

void add_others(std::string& out, const LogVerdict& verdict, const Speech& say, size_t columns) {
  if (!verdict.others.empty()) heading(out, kOthers, say.language());
  for (const LogCause& cause : verdict.others) {
    std::string line = fmt::format("{}: {}", cause.code, codes::get(cause.code).title.in(say.language()));
    if (std::string ranks = who(cause, say); !ranks.empty()) line += fmt::format(" ({})", ranks);
    add_wrapped(out, line, columns);
    if (!cause.evidence.empty()) add_evidence(out, verdict, cause.evidence.back());
  }
  if (!verdict.cascades.empty()) heading(out, kFollowed, say.language());
  for (const diagnosis::LogCascade& cascade : verdict.cascades) {
    std::string line = fmt::format("{}× {}: {}", grouped(cascade.count), cascade.code, codes::get(cascade.code).title.in(say.language()));
    if (!cascade.ranks.empty()) line += fmt::format(" ({})", say(kRank, base::format_ranges(cascade.ranks)));
    if (cascade.first.line > 0) line += fmt::format(", {}", where(verdict, cascade.first));
    add_wrapped(out, line, columns);
  }
}

void add_read(std::string& out, const LogVerdict& verdict, const std::vector<doctor::Words>& notes, const Speech& say, size_t columns) {
  uint64_t lines = 0, cut = 0;
  for (const diagnosis::LogFile& file : verdict.files) {
    lines += file.lines;
    cut += file.cut;
  }
  heading(out, kRead, say.language());
  size_t files = verdict.files.size();
  add_wrapped(out, files == 1 ? say(kOneFile, grouped(lines)) : say(kFiles, files, grouped(lines)), columns);
  if (!verdict.ranks.empty()) add_wrapped(out, say(kRanksSeen, base::format_ranges(verdict.ranks)), columns);
  if (!verdict.missing.empty()) add_wrapped(out, say(kRanksMissing, base::format_ranges(verdict.missing), verdict.world), columns);
  if (cut > 0) add_wrapped(out, say(kCut, cut), columns);
  for (const doctor::Words& note : notes) add_wrapped(out, note.in(say.language()), columns);
}

base::Json json_of(const LogVerdict& verdict, const LogEvidence& evidence) {
  return {{"file", verdict.files[evidence.file].name}, {"line", evidence.line}, {"text", evidence.text}};
}

base::Json json_of(const LogVerdict& verdict, const LogCause& cause) {
  const codes::Code& page = codes::get(cause.code);
  base::Json evidence = base::Json::array();
  for (const LogEvidence& one : cause.evidence) evidence.push_back(json_of(verdict, one));
  base::Json out{{"code", cause.code}, {"title", page.title.english}, {"ranks", cause.ranks}, {"host", cause.host}};
  if (cause.local_rank >= 0) out["local_rank"] = cause.local_rank;
  out["detail"] = cause.detail.english;
  out["why"] = page.why.english;
  out["fix"] = codes::fill_page(page.fix.english, cause.observed);
  out["advice"] = base::Json::array();
  for (const doctor::Words& one : cause.advice) out["advice"].push_back(one.english);
  out["evidence"] = std::move(evidence);
  return out;
}

}  // namespace

std::string log_report(const LogVerdict& verdict, const std::vector<doctor::Words>& notes, Language language, size_t columns) {
  Speech say(language);
  std::string out;
  if (verdict.cause) add_cause(out, verdict, say, columns);
  else out += say(kNothing) + "\n";
  for (const diagnosis::LogSection& section : verdict.sections) {
    out += fmt::format("\n{}\n", section.title.in(language));
    for (const doctor::Words& line : section.lines) add_row(out, base::printable(line.in(language), 2000), columns);
  }
  add_others(out, verdict, say, columns);
  add_read(out, verdict, notes, say, columns);
  return out;
}

base::Json log_json(const LogVerdict& verdict, const std::vector<doctor::Words>& notes) {
  base::Json out{{"schema", 1}};
  out["cause"] = verdict.cause ? json_of(verdict, *verdict.cause) : base::Json(nullptr);
  out["others"] = base::Json::array();
  for (const LogCause& cause : verdict.others) out["others"].push_back(json_of(verdict, cause));
  out["cascades"] = base::Json::array();
  for (const diagnosis::LogCascade& cascade : verdict.cascades) {
    base::Json one{{"code", cascade.code}, {"count", cascade.count}, {"ranks", cascade.ranks}};
    if (cascade.first.line > 0) one["first"] = json_of(verdict, cascade.first);
    out["cascades"].push_back(std::move(one));
  }
  out["world_size"] = verdict.world;
  out["ranks"] = verdict.ranks;
  out["missing_ranks"] = verdict.missing;
  out["files"] = base::Json::array();
  for (const diagnosis::LogFile& file : verdict.files)
    out["files"].push_back({{"name", file.name}, {"lines", file.lines}, {"bytes", file.bytes}, {"cut_lines", file.cut}});
  out["sections"] = base::Json::array();
  for (const diagnosis::LogSection& section : verdict.sections) {
    base::Json lines = base::Json::array();
    for (const doctor::Words& line : section.lines) lines.push_back(line.english);
    out["sections"].push_back({{"title", section.title.english}, {"lines", std::move(lines)}});
  }
  out["notes"] = base::Json::array();
  for (const doctor::Words& note : notes) out["notes"].push_back(note.english);
  return out;
}

}  // namespace phalanx::view
