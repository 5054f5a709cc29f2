#include "machine/cgroups.h"

#include <algorithm>

#include "base/text.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostLines = 64;
constexpr size_t kMostFolders = 64;

bool has_word(std::string_view list, std::string_view word) {
  std::vector<std::string_view> words = base::split(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Of equal mounts the last: it covers the others.
const Mount* find_mount(const std::vector<Mount>& mounts, std::string_view type, std::string_view controller) {
  const Mount* found = nullptr;
  for (const Mount& m : mounts)
    if (m.fs_type == type && (controller.empty() || has_word(m.super_options, controller))) found = &m;
  return found;
}

// Where `path` (as the kernel tells it) is seen below a mount: what the mount's own root covers is taken off. In a cgroup namespace
// the path may begin with "/..": then only the mount itself is to be seen.
CgroupChain chain_below(const Mount& mount, std::string path) {
  if (mount.root != "/" && path.rfind(mount.root, 0) == 0) path = path.substr(mount.root.size());
  if (path.rfind("/..", 0) == 0 || path == "/") path.clear();
  CgroupChain chain;
  while (chain.folders.size() < kMostFolders - 1 && !path.empty()) {
    chain.folders.push_back(mount.mount_point + path);
    path.erase(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  chain.folders.push_back(mount.mount_point);
  return chain;
}

}  // namespace

std::vector<CgroupLine> parse_cgroup(std::string_view text) {
  std::vector<CgroupLine> lines;
  for (std::string_view line : base::split_lines(text)) {
    if (lines.size() >= kMostLines) break;
    size_t first = line.find(':');
    size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos || second + 1 >= line.size() || line[second + 1] != '/') continue;
    CgroupLine parsed;
    std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty())
      for (std::string_view c : base::split(controllers, ',')) parsed.controllers.emplace_back(c);
    parsed.path = std::string(line.substr(second + 1));
    lines.push_back(std::move(parsed));
  }
  return lines;
}

CgroupChain cgroup_chain(std::string_view controller, const std::vector<CgroupLine>& lines, const std::vector<Mount>& mounts) {
  if (const Mount* v1 = find_mount(mounts, "cgroup", controller))
    for (const CgroupLine& line : lines)
      if (std::find(line.controllers.begin(), line.controllers.end(), controller) != line.controllers.end())
        return chain_below(*v1, line.path);
  if (const Mount* v2 = find_mount(mounts, "cgroup2", ""))
    for (const CgroupLine& line : lines)
      if (line.controllers.empty()) {
        CgroupChain chain = chain_below(*v2, line.path);
        chain.version_2 = true;
        return chain;
      }
  return {};
}

}  // namespace phalanx::machine
