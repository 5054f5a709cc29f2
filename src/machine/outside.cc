#include "machine/outside.h"

#include <unistd.h>

#include <algorithm>

#include "base/text.h"

namespace phalanx::machine {
namespace {

constexpr int64_t kMostGpus = 4096;
constexpr int64_t kMostPid = 1 << 22;  // PID_MAX_LIMIT

// "net:[4026531840]"
bool is_space(std::string_view text, std::string_view kind) {
  if (!text.starts_with(kind) || text.size() < kind.size() + 4 || text.size() > 32) return false;
  const std::string_view rest = text.substr(kind.size());
  return rest.starts_with(":[") && rest.ends_with("]") &&
         std::all_of(rest.begin() + 2, rest.end() - 1, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

Outside parse_outside(std::string_view text) {
  Outside out;
  for (std::string_view word : base::split(text, ' ')) {
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
    if (name == "net" && is_space(value, "net")) out.net_space = value;
    if (name == "pid" && is_space(value, "pid")) out.pid_space = value;
    if (name == "infiniband" && (value == "0" || value == "1")) out.infiniband = value == "1";
    if (name == "gpus")
      if (auto n = base::parse_int(value, 0, kMostGpus); n.ok()) out.gpus = *n;
    if (name == "init")
      if (auto n = base::parse_int(value, 1, kMostPid); n.ok()) out.init = *n;
  }
  return out;
}

std::string own_space(const std::string& proc, const char* space) {
  char target[64];
  const ssize_t n = ::readlink((proc + "/self/ns/" + space).c_str(), target, sizeof(target));
  return n > 0 ? std::string(target, static_cast<size_t>(n)) : "";
}

}  // namespace phalanx::machine
