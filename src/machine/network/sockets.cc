#include "machine/network/sockets.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/text.h"
#include "machine/network/tcp_sockets.h"
#include "machine/small_files.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

// The socket that a descriptor in /proc/<pid>/fd stands for; 0 if it is none.
uint64_t socket_of(int folder, const char* name) {
  char link[64];
  ssize_t n = ::readlinkat(folder, name, link, sizeof(link) - 1);
  if (n < 9) return 0;
  link[n] = 0;
  return std::strncmp(link, "socket:[", 8) == 0 ? std::strtoull(link + 8, nullptr, 10) : 0;
}

}  // namespace

std::vector<std::string> proc_net_forms(const os::Endpoint& endpoint) {
  uint32_t words[4] = {};
  // The kernel prints each 32-bit word of the address as it lies in memory (net/ipv4/tcp_ipv4.c, get_tcp4_sock).
  if (::inet_pton(AF_INET, endpoint.address.c_str(), words) == 1)
    return {fmt::format("{:08X}:{:04X}", words[0], endpoint.port),
            fmt::format("0000000000000000{:08X}{:08X}:{:04X}", htonl(0xffff), words[0], endpoint.port)};
  if (::inet_pton(AF_INET6, endpoint.address.c_str(), words) == 1)
    return {fmt::format("{:08X}{:08X}{:08X}{:08X}:{:04X}", words[0], words[1], words[2], words[3], endpoint.port)};
  return {};
}

uint64_t match_tcp_line(std::string_view line, std::string_view remote_hex) {
  std::vector<std::string_view> f = base::split_words(line);
  if (f.size() < 10 || f[2] != remote_hex || f[3] != "01") return 0;
  base::Result<int64_t> inode = base::parse_int(f[9], 1, INT64_MAX);
  return inode.ok() ? static_cast<uint64_t>(*inode) : 0;
}

bool parse_listener(std::string_view line, Listener& listener) {
  std::vector<std::string_view> f = base::split_words(line);
  if (f.size() < 10 || f[3] != "0A") return false;
  size_t colon = f[1].find(':');
  if (colon != 8 && colon != 32) return false;
  uint32_t words[4] = {};
  for (size_t i = 0; i < colon / 8; ++i)
    words[i] = static_cast<uint32_t>(std::strtoul(std::string(f[1].substr(8 * i, 8)).c_str(), nullptr, 16));
  char shown[INET6_ADDRSTRLEN] = "";
  if (!::inet_ntop(colon == 8 ? AF_INET : AF_INET6, words, shown, sizeof(shown))) return false;
  listener.address = shown;
  listener.port = static_cast<int>(std::strtoul(std::string(f[1].substr(colon + 1)).c_str(), nullptr, 16));
  base::Result<int64_t> uid = base::parse_int(f[7], 0, UINT32_MAX), inode = base::parse_int(f[9], 1, INT64_MAX);
  if (!uid.ok() || !inode.ok()) return false;
  listener.uid = static_cast<uid_t>(*uid);
  listener.inode = static_cast<uint64_t>(*inode);
  return true;
}

std::vector<Listener> listeners(const std::string& root, const std::vector<int>& ports) {
  std::vector<Listener> found;
  if (ports.empty()) return found;
  for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    base::Result<std::string> text = os::read_file(root + path, 64 << 20);
    if (!text.ok()) continue;
    for (std::string_view line : base::split_lines(*text)) {
      Listener l;
      if (parse_listener(line, l) && std::find(ports.begin(), ports.end(), l.port) != ports.end()) found.push_back(std::move(l));
    }
  }
  return found;
}

std::map<uint64_t, int64_t> holders(const std::string& root, const std::set<uint64_t>& inodes, os::milliseconds budget) {
  std::map<uint64_t, int64_t> found;
  os::Mono end = os::mono_now() + budget;
  for (int64_t pid : numbers_in(root + "/proc")) {
    if (found.size() == inodes.size() || os::mono_now() > end) break;
    DIR* dir = ::opendir(fmt::format("{}/proc/{}/fd", root, pid).c_str());
    if (!dir) continue;
    while (dirent* entry = ::readdir(dir)) {
      uint64_t inode = socket_of(::dirfd(dir), entry->d_name);
      if (inode && inodes.count(inode)) found.emplace(inode, pid);
    }
    ::closedir(dir);
  }
  return found;
}

std::set<uint64_t> sockets_to(const os::Endpoint& remote) {
  std::optional<std::set<uint64_t>> told = established_to(remote);
  return told ? *std::move(told) : sockets_in_tables(remote);
}

std::set<uint64_t> sockets_in_tables(const os::Endpoint& remote) {
  std::set<uint64_t> inodes;
  std::vector<std::string> forms = proc_net_forms(remote);
  for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    base::Result<std::string> text = os::read_file(path, 64 << 20);
    if (!text.ok()) continue;
    for (std::string_view line : base::split_lines(*text))
      for (const std::string& form : forms)
        if (uint64_t inode = match_tcp_line(line, form)) inodes.insert(inode);
  }
  return inodes;
}

bool holds_socket(const std::vector<pid_t>& pids, const std::set<uint64_t>& inodes) {
  for (pid_t pid : pids) {
    std::string folder = fmt::format("/proc/{}/fd", pid);
    DIR* dir = ::opendir(folder.c_str());
    if (!dir) continue;
    bool found = false;
    while (dirent* entry = ::readdir(dir)) {
      uint64_t inode = socket_of(::dirfd(dir), entry->d_name);
      if (inode && inodes.count(inode)) found = true;
    }
    ::closedir(dir);
    if (found) return true;
  }
  return false;
}

}  // namespace phalanx::machine
