#include "diagnosis/hang/flight_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "os/files.h"

namespace phalanx::diagnosis {
namespace {

constexpr size_t kMostBytes = 64 << 20;  // of one dump
constexpr size_t kMostDumps = 1 << 14;
constexpr size_t kMostRefused = 64;

std::string beginning_of(const std::string& path) {
  std::string head(1 << 12, '\0');
  FILE* file = std::fopen(path.c_str(), "rbe");
  if (!file) return "";
  head.resize(std::fread(head.data(), 1, head.size(), file));
  std::fclose(file);
  return head;
}

}  // namespace

std::optional<int> rank_of_file_name(std::string_view name) {
  for (std::string_view ending : {".json", ".pickle", ".pkl", ".pt", ".bin"})
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  size_t begin = name.size();
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
  base::Result<int64_t> rank = base::parse_int(name.substr(begin), 0, 1 << 20);
  return rank.ok() ? std::optional<int>(static_cast<int>(*rank)) : std::nullopt;
}

base::Result<std::vector<std::string>> flight_dumps_in(const std::string& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error), end;
  std::vector<std::string> files;
  for (; !error && entry != end && files.size() <= kMostDumps; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (!rank_of_file_name(name) || !entry->is_regular_file(error) || error) continue;
    if (looks_like_flight_recorder(beginning_of(entry->path().string()))) files.push_back(entry->path().string());
  }
  if (error) return base::system_error("read", folder, error.value());
  std::sort(files.begin(), files.end());
  return files;
}

base::Result<FlightDumps> read_flight_dumps(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!os::exists(path)) return base::fail(base::ErrorKind::kConfig, fmt::format("not found: {}", base::quote(path)));
    if (!os::is_folder(path)) {
      files.push_back(path);
      continue;
    }
    TRY_ASSIGN(std::vector<std::string> found, flight_dumps_in(path));
    files.insert(files.end(), found.begin(), found.end());
  }
  if (files.size() > kMostDumps) return base::fail(base::ErrorKind::kConfig, fmt::format("more than {} dumps", kMostDumps));
  FlightDumps dumps;
  std::set<int> seen;
  auto refuse = [&](const std::string& path, const std::string& why) {
    if (dumps.refused.size() < kMostRefused) dumps.refused.push_back(fmt::format("{}: {}", path, why));
  };
  for (const std::string& path : files) {
    std::optional<int> rank = rank_of_file_name(std::string_view(path).substr(path.rfind('/') + 1));
    if (!rank) {
      refuse(path, "the file name does not end in a rank");
      continue;
    }
    base::Result<std::string> bytes = os::read_file(path, kMostBytes);
    base::Result<RankRecord> trace = bytes.ok() ? read_flight_recorder(*rank, *bytes) : base::Result<RankRecord>(bytes.error());
    if (!trace.ok()) {
      refuse(path, trace.error().message);
    } else if (!seen.insert(*rank).second) {
      refuse(path, fmt::format("a second dump of rank {}", *rank));
    } else {
      dumps.records.push_back(std::move(*trace));
    }
  }
  if (dumps.records.empty()) {
    std::string why = dumps.refused.empty() ? "no file in this directory is a dump" : dumps.refused[0];
    return base::fail(base::ErrorKind::kConfig, "no dump of the flight recorder could be read").because(why);
  }
  std::sort(dumps.records.begin(), dumps.records.end(), [](const RankRecord& a, const RankRecord& b) { return a.rank < b.rank; });
  return dumps;
}

}  // namespace phalanx::diagnosis
