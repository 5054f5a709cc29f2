#include "host/sockets.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/text.h"
#include "os/files.h"

namespace host {

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

std::set<uint64_t> sockets_to(const os::Endpoint& remote) {
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
      char link[64];
      ssize_t n = ::readlinkat(::dirfd(dir), entry->d_name, link, sizeof(link) - 1);
      if (n < 9) continue;
      link[n] = 0;
      if (std::strncmp(link, "socket:[", 8) == 0 && inodes.count(std::strtoull(link + 8, nullptr, 10))) found = true;
    }
    ::closedir(dir);
    if (found) return true;
  }
  return false;
}

}  // namespace host
