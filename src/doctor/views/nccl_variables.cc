#include "doctor/views/nccl_variables.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "base/text.h"
#include "codes/values.h"

namespace phalanx::doctor {
namespace {

constexpr size_t kMostName = 64;

// Who reads a name: "known", "others", "others-prefix", "torch" (codes/values/variable-names.tsv).
template <typename Is>
std::string_view first_name(std::string_view reader, Is is) {
  const codes::ValueTable& names = codes::values("variable-names");
  for (size_t i = 0; i < names.size(); ++i)
    if (names.row(i)[0] == reader && is(names.row(i)[1])) return names.row(i)[1];
  return "";
}
bool is_name_of(std::string_view reader, std::string_view name) {
  return !first_name(reader, [&](std::string_view n) { return n == name; }).empty();
}

struct Choices {
  std::string_view name, words, separators;
};
constexpr Choices kChoices[] = {
    {"NCCL_DEBUG", " version warn info abort trace ", ""},
    {"NCCL_DEBUG_SUBSYS", " init coll p2p shm net graph tuning env alloc call proxy nvls bootstrap reg profile ras all alloc_host destroy ",
     ","},
    {"NCCL_ALGO", " tree ring collnet collnetdirect collnetchain nvls nvlstree pat allreduce broadcast reduce allgather reducescatter ",
     ",;:"},
    {"NCCL_PROTO", " ll ll128 simple allreduce broadcast reduce allgather reducescatter sendrecv ", ",;:"},
    {"NCCL_P2P_LEVEL", " loc nvl pix pxb pxn p2c phb node sys 0 1 2 3 4 5 ", ""},
    {"NCCL_NET_GDR_LEVEL", " loc nvl pix pxb pxn p2c phb node sys 0 1 2 3 4 5 ", ""},
    {"NCCL_SOCKET_FAMILY", " af_inet af_inet6 ", ""},
    {"NCCL_LAUNCH_MODE", " parallel group ", ""},
};

}  // namespace

std::span<const NcclVariable> nccl_variables() {
  static const std::vector<NcclVariable> all = [] {
    const codes::ValueTable& table = codes::values("nccl-variables");
    std::vector<NcclVariable> read;
    for (size_t i = 0; i < table.size(); ++i) {
      codes::ValueRow row = table.row(i);
      auto integer = [&](size_t column) { return static_cast<int>(codes::number(row[column])); };
      read.push_back({row[0], row[1] == "number" ? VariableKind::kNumber : VariableKind::kText, codes::number(row[2]),
                      codes::number(row[3]), integer(4), integer(5), row[6]});
    }
    return read;
  }();
  return all;
}

const NcclVariable* find_nccl_variable(std::string_view name) {
  auto all = nccl_variables();
  auto at = std::lower_bound(all.begin(), all.end(), name, [](const NcclVariable& v, std::string_view n) { return v.name < n; });
  return at != all.end() && at->name == name ? &*at : nullptr;
}

bool is_others_nccl_name(std::string_view name) {
  return !first_name("others-prefix", [&](std::string_view prefix) { return name.starts_with(prefix); }).empty() ||
         is_name_of("others", name);
}

std::string_view torch_name_of(std::string_view name) {
  if (!name.starts_with("NCCL_") || !is_name_of("torch", name.substr(5))) return "";
  return first_name("known", [&](std::string_view known) { return known.starts_with("TORCH_") && known.substr(6) == name; });
}

words::Message advice_on_name(std::string_view name) {
  codes::ValueRow row = codes::values("variables-misnamed").find(name);
  return row.empty() ? words::Message{} : words::Message{std::string(row[1]), std::string(row[2])};
}

bool is_known_name(std::string_view name) {
  return find_nccl_variable(name) || is_others_nccl_name(name) || !torch_name_of(name).empty() || is_name_of("known", name);
}

std::string meant_name(std::string_view name) {
  if (name.size() < 6 || name.size() > kMostName || is_known_name(name)) return "";
  std::string upper(base::trim(name));
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  if (is_known_name(upper)) return upper;
  std::string best;
  int nearest = upper.size() >= 12 ? 3 : 2;  // short names have neighbours that are names too: WANDB_MODE, WANDB_NAME
  auto consider = [&](std::string_view known) {
    if (known.size() > upper.size() + 2 || upper.size() > known.size() + 2 || known.size() < 8) return;
    int distance = base::edit_distance(upper, known);
    if (distance >= nearest) return;
    nearest = distance;
    best = known;
  };
  for (const NcclVariable& v : nccl_variables())
    if (v.removed == 0) consider(v.name);
  first_name("known", [&](std::string_view known) {
    consider(known);
    return false;
  });
  return best;
}

std::optional<ReadNumber> read_as_nccl(std::string_view value) {
  if (value.empty()) return std::nullopt;
  std::string text(value);
  char* end = nullptr;
  errno = 0;
  ReadNumber read;
  read.value = std::strtoll(text.c_str(), &end, 0);
  if (errno != 0) return std::nullopt;
  read.whole = end != text.c_str() && *end == '\0';
  std::string_view digits = base::trim(value);
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) digits.remove_prefix(1);
  read.octal = read.whole && digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' &&
               digits.find_first_not_of('0') != std::string_view::npos;
  return read;
}

std::string unknown_word(std::string_view name, std::string_view value) {
  for (const Choices& choices : kChoices) {
    if (choices.name != name || value.empty()) continue;
    std::string lower = base::to_lower(value);
    for (char separator : choices.separators) std::replace(lower.begin(), lower.end(), separator, ',');
    for (std::string_view word : base::split(lower, choices.separators.empty() ? '\0' : ',')) {
      while (!choices.separators.empty() && word.starts_with('^')) word.remove_prefix(1);
      if (!word.empty() && choices.words.find(" " + std::string(word) + " ") == std::string_view::npos) return std::string(word);
    }
  }
  return "";
}

int nccl_minor(std::string_view version) {
  if (!version.starts_with("2.")) return -1;
  int minor = 0;
  size_t i = 2;
  for (; i < version.size() && version[i] >= '0' && version[i] <= '9' && minor < 1000; ++i) minor = minor * 10 + (version[i] - '0');
  return i == 2 ? -1 : minor;
}

}  // namespace phalanx::doctor
