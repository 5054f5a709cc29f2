// NCCL's own configuration files, read as NCCL reads them (src/misc/param.cc, setEnvFile): a line is NAME=value, nothing is
// trimmed, '#' counts in the first column only, and a name that is set already stays as it is (setenv without overwrite).
// $NCCL_CONF_FILE replaces ~/.nccl.conf; /etc/nccl.conf is read after either.
#include <algorithm>

#include "machine/software/parts.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostBytes = 64 << 10;
constexpr size_t kLine = 4095;  // fgets into char[4096]
constexpr size_t kWord = 1023;  // strncpy into char[1024]
constexpr size_t kMostNames = 256;

bool is_secret(std::string_view name) {
  for (std::string_view word : {"KEY", "TOKEN", "SECRET", "PASS"})
    if (name.find(word) != std::string_view::npos) return true;
  return false;
}

void read_file(const Rooted& files, const std::string& path, SoftwareFacts& facts) {
  std::optional<std::string> text = files.read(path, kMostBytes);
  if (!text) return;
  facts.nccl_conf_file.append(facts.nccl_conf_file.empty() ? "" : ", ").append(path);
  for (std::string_view rest = *text; !rest.empty();) {
    size_t end = std::min(rest.find('\n'), kLine - 1);
    std::string_view line = rest.substr(0, end);
    rest = end < rest.size() ? rest.substr(rest[end] == '\n' ? end + 1 : end) : std::string_view();
    line = line.substr(0, line.find('\0'));
    if (line.ends_with('\r')) line.remove_suffix(1);  // since 2.30; older ones keep it in the value
    size_t equals = line.find('=');
    if (line.starts_with('#') || equals == std::string_view::npos || facts.nccl_conf.size() >= kMostNames) continue;
    std::string name(line.substr(0, std::min(equals, kWord)));
    if (!is_secret(name)) facts.nccl_conf.emplace(std::move(name), line.substr(equals + 1, kWord));
  }
}

}  // namespace

void read_nccl_conf(const Rooted& files, const ProbeRequest& request, SoftwareFacts& facts) {
  auto named = request.environment.find("NCCL_CONF_FILE"), home = request.environment.find("HOME");
  if (named != request.environment.end() && !named->second.empty())
    read_file(files, absolute_path(named->second, request.directory), facts);
  else if (home != request.environment.end()) read_file(files, home->second + "/.nccl.conf", facts);
  read_file(files, "/etc/nccl.conf", facts);
}

}  // namespace phalanx::machine
