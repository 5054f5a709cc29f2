// Names that NCCL does not know, and values that it reads otherwise than they look.
#include <fmt/format.h>

#include "base/text.h"
#include "doctor/checks/rows.h"
#include "doctor/settings.h"
#include "doctor/views/nccl_variables.h"

namespace phalanx::doctor {
namespace {

template <typename Look>  // look(host, setting)
void each_setting(const Situation& s, Look look) {
  for (size_t host : probed(s))
    for (const Setting& one : settings(s, host, {"NC", "NLCC"})) look(host, one);
}

void check_misspelled(const Situation& s, Findings& findings) {
  each_setting(s, [&](size_t host, const Setting& one) {
    std::string meant = meant_name(one.name);
    if (meant.empty() || !advice_on_name(one.name).empty() || one.name.find(' ') != std::string::npos) return;
    findings.on(host, tr("{}={} is not a name NCCL knows; {} is", one.name, one.value, meant),
                fmt::format("export {}={}", meant, base::shell_quote(one.value)));
  });
}

void check_unknown(const Situation& s, Findings& findings) {
  each_setting(s, [&](size_t host, const Setting& one) {
    if (Words advice = advice_on_name(one.name); !advice.empty()) {
      findings.on(host, tr("{}={} does nothing; {}", one.name, one.value, advice), away(s, host, one));
      return;
    }
    if (!one.name.starts_with("NCCL_") || is_known_name(one.name) || !meant_name(one.name).empty()) return;
    findings.on(host, tr("{}={}: no release of NCCL from 2.3 to 2.30 has this name", one.name, one.value), away(s, host, one));
  });
}

void check_renamed(const Situation& s, Findings& findings) {
  each_setting(s, [&](size_t host, const Setting& one) {
    std::string_view now = torch_name_of(one.name);
    if (now.empty()) return;
    std::string torch = package(s, host, "torch");
    if (!torch.empty() && (torch.starts_with("1.") || torch.starts_with("2.0") || torch.starts_with("2.1"))) return;  // its name then
    findings.on(host, tr("{}={}: torch calls it {} since 2.2", one.name, one.value, now),
                fmt::format("export {}={}", now, base::shell_quote(one.value)));
  });
}

void check_removed(const Situation& s, Findings& findings) {
  each_setting(s, [&](size_t host, const Setting& one) {
    const NcclVariable* known = find_nccl_variable(one.name);
    int have = nccl_minor(nccl_version(s, host));
    if (!known || known->removed == 0 || (have >= 0 ? have < known->removed : known->removed > 12)) return;
    Words instead = known->instead.empty() ? Words{} : tr("; today: {}", known->instead);
    findings.on(host, tr("{}={} was removed in NCCL 2.{}{}", one.name, one.value, known->removed, instead), away(s, host, one));
  });
}

void check_too_new(const Situation& s, Findings& findings) {
  each_setting(s, [&](size_t host, const Setting& one) {
    const NcclVariable* known = find_nccl_variable(one.name);
    int have = nccl_minor(nccl_version(s, host));
    if (!known || have < 0 || known->since <= have) return;
    findings.on(host, tr("{}={} exists since NCCL 2.{}; this host has {}", one.name, one.value, known->since, nccl_version(s, host)),
                away(s, host, one));
  });
}

void check_not_a_number(const Situation& s, Findings& findings) {
  each_setting(s, [&](size_t host, const Setting& one) {
    const NcclVariable* known = find_nccl_variable(one.name);
    if (!known || known->kind != VariableKind::kNumber) return;
    std::optional<ReadNumber> read = read_as_nccl(one.value);
    if (!read || (read->whole && !read->octal)) return;
    std::string lower = base::to_lower(base::trim(one.value));
    bool yes = lower == "true" || lower == "on" || lower == "yes";
    std::string meant = yes           ? "1"
                        : read->octal ? std::string(base::trim(one.value)).substr(one.value.find_first_not_of(" 0"))
                                      : std::to_string(read->value);
    findings.on(host, tr("NCCL reads {}={} as {}", one.name, one.value, read->value), fmt::format("export {}={}", one.name, meant));
  });
}

void check_range(const Situation& s, Findings& findings) {
  each_setting(s, [&](size_t host, const Setting& one) {
    const NcclVariable* known = find_nccl_variable(one.name);
    std::optional<ReadNumber> read = read_as_nccl(one.value);
    if (!known || !read || !read->whole || (known->min == 0 && known->max == 0)) return;
    if (read->value >= known->min && read->value <= known->max) return;
    findings.on(host, tr("{}={}; the range is {} to {}", one.name, one.value, known->min, known->max), away(s, host, one));
  });
}

void check_word(const Situation& s, Findings& findings) {
  each_setting(s, [&](size_t host, const Setting& one) {
    std::string word = unknown_word(one.name, one.value);
    if (word.empty()) return;
    findings.on(host, tr("{}={}: '{}' is unknown to NCCL", one.name, one.value, word), away(s, host, one));
  });
}

const Row kNcclNameRows[] = {
    {"NCCL-MISSPELLED", Severity::kWarning, check_misspelled}, {"NCCL-UNKNOWN-VARIABLE", Severity::kNote, check_unknown},
    {"NCCL-RENAMED", Severity::kNote, check_renamed},          {"NCCL-REMOVED", Severity::kWarning, check_removed},
    {"NCCL-TOO-NEW", Severity::kNote, check_too_new},          {"NCCL-NOT-A-NUMBER", Severity::kWarning, check_not_a_number},
    {"NCCL-RANGE", Severity::kWarning, check_range},           {"NCCL-WORD", Severity::kWarning, check_word},
};

}  // namespace

std::span<const Row> nccl_name_rows() { return kNcclNameRows; }

}  // namespace phalanx::doctor
