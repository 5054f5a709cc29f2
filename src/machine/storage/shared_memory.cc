#include "machine/storage/shared_memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "machine/ranks/process_table.h"
#include "machine/small_files.h"
#include "machine/storage/mounts.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostNames = 4096;
constexpr size_t kMostReported = 32;
constexpr os::milliseconds kScanBudget{250};
constexpr time_t kYoung_s = 30;  // made a moment ago: its owner may not have mapped it yet

struct Segment {
  std::string name;
  int64_t bytes = 0;  // that it occupies
  bool used = false;
};

// Only those whose users we could see: our own, or everybody's if we are root.
std::map<uint64_t, Segment> segments(const std::string& folder) {
  std::map<uint64_t, Segment> found;
  DIR* dir = ::opendir(folder.c_str());
  if (!dir) return found;
  while (dirent* entry = ::readdir(dir)) {
    struct stat s{};
    if (found.size() >= kMostNames || !is_segment_of_a_job(entry->d_name)) continue;
    if (::fstatat(::dirfd(dir), entry->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(s.st_mode)) continue;
    if (::geteuid() != 0 && s.st_uid != ::geteuid()) continue;
    if (s.st_mtime + kYoung_s > ::time(nullptr)) continue;
    found[s.st_ino] = {entry->d_name, s.st_blocks * 512, false};
  }
  ::closedir(dir);
  return found;
}

// 7f12…-7f13… rw-s 00000000 00:1b 1234   /dev/shm/nccl-AbCdEf
void mark_mapped(std::string_view maps, std::map<uint64_t, Segment>& found) {
  for (std::string_view line : base::split_lines(maps)) {
    if (line.find("/dev/shm/") == std::string_view::npos) continue;
    std::vector<std::string_view> f = base::split_words(line);
    if (f.size() < 6) continue;
    base::Result<int64_t> inode = base::parse_int(f[4], 1, INT64_MAX);
    if (!inode.ok()) continue;
    if (auto segment = found.find(static_cast<uint64_t>(*inode)); segment != found.end()) segment->second.used = true;
  }
}

void mark_open(const std::string& root, int64_t pid, std::map<uint64_t, Segment>& found) {
  std::string folder = fmt::format("{}/proc/{}/fd", root, pid);
  for (int64_t fd : numbers_in(folder)) {
    char link[256];
    std::string path = fmt::format("{}/{}", folder, fd);
    ssize_t n = ::readlink(path.c_str(), link, sizeof(link));
    if (n < 9 || std::string_view(link, static_cast<size_t>(n)).substr(0, 9) != "/dev/shm/") continue;
    struct stat s{};
    if (::stat(path.c_str(), &s) != 0) continue;
    if (auto segment = found.find(s.st_ino); segment != found.end()) segment->second.used = true;
  }
}

// False if not every process could be looked at in time: then nobody may say that a segment is an orphan.
bool mark_used(const std::string& root, std::map<uint64_t, Segment>& found) {
  return each_process(root, kScanBudget, [&](int64_t pid, const ProcessStat& stat) {
    constexpr int64_t kKernelThreads = 2;  // kthreadd: its children have no memory of their own
    if (stat.parent == kKernelThreads || stat.state == 'Z') return true;
    base::Result<std::string> maps = os::read_file(fmt::format("{}/proc/{}/maps", root, pid), 32 << 20);
    if (maps.ok()) mark_mapped(*maps, found);
    mark_open(root, pid, found);
    return true;
  });
}

void find_orphans(const std::string& root, StorageFacts& facts) {
  std::map<uint64_t, Segment> found = segments(root + "/dev/shm");
  if (found.empty() || !mark_used(root, found)) return;
  for (const auto& [inode, segment] : found) {
    if (segment.used) continue;
    facts.shm_orphan_bytes += segment.bytes;
    if (facts.shm_orphans.size() < kMostReported) facts.shm_orphans.push_back(segment.name);
  }
  std::sort(facts.shm_orphans.begin(), facts.shm_orphans.end());
}

std::vector<std::string> conf_files_in(const std::string& folder) {
  std::vector<std::string> files;
  DIR* dir = ::opendir(folder.c_str());
  if (!dir) return files;
  while (dirent* entry = ::readdir(dir)) {
    std::string name = entry->d_name;
    if (files.size() < 256 && name.size() > 5 && name.compare(name.size() - 5, 5, ".conf") == 0) files.push_back(folder + "/" + name);
  }
  ::closedir(dir);
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

bool is_segment_of_a_job(std::string_view name) {
  for (std::string_view start : {"nccl-", "torch_", "sem.mp-", "sem.loky-", "psm_", "cuda.shm."})
    if (name.substr(0, start.size()) == start) return true;
  return false;
}

std::optional<bool> remove_ipc_in(std::string_view text) {
  std::optional<bool> value;
  for (std::string_view line : base::split_lines(text)) {
    line = base::trim(line);
    if (line.substr(0, 9) != "RemoveIPC") continue;
    line = base::trim(line.substr(9));
    if (line.empty() || line[0] != '=') continue;
    std::string word = base::to_lower(base::trim(line.substr(1)));
    if (word == "yes" || word == "true" || word == "1" || word == "on") value = true;
    if (word == "no" || word == "false" || word == "0" || word == "off") value = false;
  }
  return value;
}

void look_at_shared_memory(const std::string& root, StorageFacts& facts) {
  facts.shm_present = os::is_folder(root + "/dev/shm");
  struct statvfs s{};
  if (facts.shm_present && ::statvfs((root + "/dev/shm").c_str(), &s) == 0) {
    facts.shm_total_bytes = static_cast<int64_t>(s.f_blocks) * static_cast<int64_t>(s.f_frsize);
    facts.shm_free_bytes = static_cast<int64_t>(s.f_bavail) * static_cast<int64_t>(s.f_frsize);
    find_orphans(root, facts);
  }
  std::vector<std::string> files = {root + "/usr/lib/systemd/logind.conf", root + "/etc/systemd/logind.conf"};
  for (const char* folder : {"/usr/lib/systemd/logind.conf.d", "/run/systemd/logind.conf.d", "/etc/systemd/logind.conf.d"})
    for (std::string& file : conf_files_in(root + folder)) files.push_back(std::move(file));
  for (const std::string& file : files)
    if (base::Result<std::string> text = os::read_file(file, 256 << 10); text.ok())
      if (std::optional<bool> value = remove_ipc_in(*text)) facts.remove_ipc = value;
}

}  // namespace phalanx::machine
