// What was found, the gravest first: a line for the code, then for each set of hosts its evidence, and the command that helps.
//
//   error    RDZV-PORT-TAKEN: a port the job needs is taken
//              gpu02: port 29500 belongs to pid 4242 (python train.py)
//              fix on gpu02: kill 4242
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "base/unicode.h"
#include "doctor/commands.h"
#include "view/check/layout.h"
#include "view/check/rows.h"
#include "view/check/view.h"
#include "view/explain_view.h"

namespace phalanx::view {
namespace {

using doctor::Finding;
using doctor::Severity;
using words::Text;
using words::tr;

constexpr size_t kWidestNames = 40;
constexpr size_t kNarrowestCommand = 40;
constexpr size_t kLongestEvidence = 2000;
constexpr Text kAccepted{"accepted##finding"};

Look look_of(Severity severity) {
  return severity == Severity::kError ? Look::kError : severity == Severity::kWarning ? Look::kWarning : Look::kNote;
}

class Findings {
 public:
  Findings(const doctor::Situation& situation, const CheckStyle& style) : situation_(situation), style_(style), page_(style) {
    for (Severity s : {Severity::kError, Severity::kWarning, Severity::kNote})
      indent_ = std::max(indent_, base::display_width(severity_name(s).in(style.language)) + 2);
    indent_ = std::max(indent_, base::display_width(unreachable()) + 2);
    indent_ = std::max(indent_, base::display_width(kAccepted.in(style.language)) + 2);
  }

  void host_without_facts(size_t host) {
    const doctor::HostView& view = situation_.hosts[host];
    std::string why = view.error.empty() ? tr(style_.language, "no answer") : base::printable(view.error, kLongestEvidence);
    if (why.starts_with(view.name + ": ")) why.erase(0, view.name.size() + 2);
    head(unreachable(), Look::kError, fmt::format("{}{}{}", base::printable(view.name), colon(), why));
  }

  // Findings of one row, one after the other.
  void code(const std::vector<const Finding*>& findings) {
    const doctor::Row& row = *findings[0]->row;
    const bool accepted = findings[0]->accepted;
    const std::string word(accepted ? kAccepted.in(style_.language) : severity_name(row.severity).in(style_.language));
    head(word, accepted ? Look::kNote : look_of(row.severity),
         fmt::format("{}{}{}", row.code, colon(), row.page().title.in(style_.language)));
    std::set<std::string> said;
    for (const Finding* finding : findings) {
      std::string evidence = base::printable(finding->evidence.in(style_.language), kLongestEvidence);
      if (!finding->hosts.empty() && situation_.hosts.size() > 1)
        evidence = name_hosts(situation_, finding->hosts, style_) + std::string(colon()) + evidence;
      line(evidence);
      if (!accepted) fix(*finding, said);
    }
    // Notes need nothing done.
    if (!accepted && said.empty() && row.severity != Severity::kNote) advice(row);
  }

  std::string take() { return page_.take(); }

 private:
  std::string_view colon() const { return Text{": "}.in(style_.language); }
  std::string unreachable() const { return std::string(Text{"no answer##severity"}.in(style_.language)); }
  void head(const std::string& word, Look look, const std::string& text) {
    std::vector<std::string> lines = wrap_hard(text, style_.columns - indent_);
    page_.raw(paint(word, look, style_.colour) + std::string(indent_ - base::display_width(word), ' ') + lines[0]);
    for (size_t i = 1; i < lines.size(); ++i) page_.raw(std::string(indent_, ' ') + lines[i]);
  }
  void line(const std::string& text) {
    size_t indent = indent_ + 2;
    for (const std::string& part : wrap_hard(text, style_.columns - indent)) page_.raw(std::string(indent, ' ') + part);
  }
  void fix(const Finding& finding, std::set<std::string>& said) {
    if (finding.fix.empty() || !said.insert(finding.where + "\n" + finding.fix).second) return;
    for (std::string_view part : base::split_lines(finding.fix))
      command(finding.where, std::string(part.starts_with("$ ") ? part.substr(2) : part));
  }
  // What the row's page advises first, for findings that have no command of their own: its first command that can be typed
  // as it is, else its first sentence.
  void advice(const doctor::Row& row) {
    if (std::string first = doctor::command_of({&row, {}, {}, "", ""}, style_.language); !first.empty()) return command("", first);
    std::vector<std::string_view> lines = base::split_lines(row.page().fix.in(style_.language));
    if (lines.empty()) return;
    // What it announces is a command whose values are not known here.
    std::string_view sentence = lines[0];
    for (std::string_view end : {std::string_view(":"), colon()})
      if (sentence.ends_with(end)) sentence.remove_suffix(end.size());
    line(tr(style_.language, "fix: ") + std::string(sentence));
  }
  void command(const std::string& where, const std::string& command) {
    std::string lead = where.empty() ? tr(style_.language, "fix: ") : tr(style_.language, "fix on {}: ", base::printable(where));
    size_t indent = indent_ + 2, column = indent + base::display_width(lead);
    bool below = column + kNarrowestCommand > style_.columns && column + base::display_width(command) > style_.columns;
    std::string begin = std::string(indent, ' ') + lead;
    if (below) {
      while (begin.ends_with(' ')) begin.pop_back();
      page_.raw(begin);
      begin = std::string(indent, ' ');
      column = indent;
    }
    for (const std::string& part :
         wrap_command(base::printable(command, kLongestEvidence), style_.columns - std::min(column, style_.columns - 1))) {
      page_.raw(begin + part);
      begin = std::string(column, ' ');
    }
    if (auto effect = doctor::effect_of(command); effect && !effect->cost.english.empty())
      line(tr(style_.language, "this command ") + std::string(effect->cost.in(style_.language)));
  }

  const doctor::Situation& situation_;
  const CheckStyle& style_;
  Page page_;
  size_t indent_ = 0;
};

}  // namespace

std::string name_hosts(const doctor::Situation& situation, const std::vector<size_t>& hosts, const CheckStyle& style) {
  size_t all = situation.hosts.size();
  if (hosts.size() == all && all > 2) return tr(style.language, "all {} hosts", all);
  std::vector<std::string> names;
  for (size_t h : hosts)
    if (h < all) names.push_back(situation.hosts[h].name);
  std::string list = fold_list(names);
  if (base::display_width(list) <= kWidestNames) return list;
  return tr(style.language, "{} of {} hosts ({}…)", hosts.size(), all, base::fit_columns(list, kWidestNames - 1));
}

std::string check_findings(const doctor::Situation& situation, const doctor::Examination& examination, const CheckStyle& style) {
  Findings out(situation, style);
  for (size_t h = 0; h < situation.hosts.size(); ++h)
    if (!situation.hosts[h].probed) out.host_without_facts(h);
  for (size_t i = 0; i < examination.findings.size();) {
    std::vector<const Finding*> same;
    const doctor::Row* row = examination.findings[i].row;
    const bool accepted = examination.findings[i].accepted;
    auto alike = [&](const Finding& finding) { return finding.row == row && finding.accepted == accepted; };
    for (; i < examination.findings.size() && alike(examination.findings[i]); ++i) same.push_back(&examination.findings[i]);
    out.code(same);
  }
  return out.take();
}

std::string check_closing(const doctor::Situation& situation, const doctor::Examination& examination, const CheckStyle& style) {
  base::Language language = style.language;
  Page page(style);
  std::vector<std::string> parts;
  auto count = [&](int n, Text one, Text many) {
    if (n > 0) parts.push_back(fmt::format("{} {}", n, (n == 1 ? one : many).in(language)));
  };
  int silent = 0;
  for (const doctor::HostView& host : situation.hosts) silent += host.probed ? 0 : 1;
  count(silent, Text{"host did not answer"}, Text{"hosts did not answer"});
  count(examination.errors, Text{"error##count"}, Text{"errors"});
  count(examination.warnings, Text{"warning##count"}, Text{"warnings"});
  count(examination.notes, Text{"note##count"}, Text{"notes"});
  if (examination.accepted > 0) parts.push_back(tr(language, "{} accepted", examination.accepted));
  size_t hosts = situation.hosts.size();
  std::string text;
  if (parts.empty()) {
    text = tr(language, "No problems on {} host{}.", hosts, hosts == 1 ? "" : "s");
  } else {
    text = base::join(parts, std::string(Text{", ##of counts"}.in(language)));
    if (!examination.findings.empty()) text += tr(language, ". Details: phalanx explain {}", examination.findings[0].row->code);
    else text += tr(language, ".");
  }
  for (const std::string& line : wrap_hard(text, style.columns)) page.raw(line);
  return page.take();
}

std::string check_text(const doctor::Situation& situation, const doctor::Examination& examination, const CheckStyle& style) {
  std::string out = check_table(situation, style);
  if (std::string links = links_text(situation, style.language); !links.empty()) {
    Page page(style);
    std::string label = Text{"links: "}.in(style.language).data();
    page.row("", 0, {{label + links, Look::kPlain}}, {style.columns});
    out += (out.empty() ? "" : "\n") + page.take();
  }
  if (std::string findings = check_findings(situation, examination, style); !findings.empty()) out += (out.empty() ? "" : "\n") + findings;
  return out + (out.empty() ? "" : "\n") + check_closing(situation, examination, style);
}

}  // namespace phalanx::view
