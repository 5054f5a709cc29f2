#include "engine/train/report/run_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>

#include "base/try.h"
#include "os/files.h"

namespace phalanx::engine::train {
namespace {

constexpr std::string_view kBegin = R"({"step":)";
constexpr std::uintmax_t kBytesRead = 64 << 20;
constexpr size_t kMaxLine = 1 << 16;

// Cheap, for a log of millions of lines: a line of ours begins with its step, and is whole if it ends in a brace.
std::optional<int64_t> step_of(std::string_view line) {
  if (!line.starts_with(kBegin) || !line.ends_with('}')) return std::nullopt;
  int64_t step = 0;
  const char* begin = line.data() + kBegin.size();
  auto [end, problem] = std::from_chars(begin, line.data() + line.size(), step);
  return problem == std::errc() && end != begin ? std::optional(step) : std::nullopt;
}

}  // namespace

base::Result<RunLog> RunLog::open(const std::string& folder, int64_t step) {
  TRY(os::make_folders(folder, 0755));
  RunLog log;
  log.path_ = folder + "/log.jsonl";
  const std::string kept_path = log.path_ + ".new";
  std::ofstream kept(kept_path, std::ios::binary | std::ios::trunc);
  if (!kept) return base::system_error("open", kept_path);
  if (step > 0) {
    std::ifstream old(log.path_, std::ios::binary);
    for (std::string line; std::getline(old, line);)
      if (step_of(line).value_or(std::numeric_limits<int64_t>::max()) <= step) kept << line << '\n';
  }
  kept.close();
  if (!kept) return base::system_error("write", kept_path);
  if (rename(kept_path.c_str(), log.path_.c_str()) != 0) return base::system_error("rename", kept_path);
  log.file_ = os::Fd(::open(log.path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!log.file_.valid()) return base::system_error("open", log.path_);
  return log;
}

base::Status RunLog::append(const base::Json& line) {
  if (!is_open()) return base::ok();
  return os::append_all(file_.get(), base::to_text(line) + "\n", path_);
}

base::Result<LossCurves> read_losses(const std::string& path) {
  std::error_code problem;
  const std::uintmax_t bytes = std::filesystem::file_size(path, problem);
  std::ifstream file(path, std::ios::binary);
  if (problem || !file) return base::system_error("open", path);
  const std::uintmax_t every = bytes / kBytesRead + 1;
  LossCurves curves;
  std::uintmax_t number = 0;
  for (std::string line; std::getline(file, line); ++number) {
    // Validations are few, and none is left out.
    if ((number % every != 0 && line.find("\"validation_loss\"") == std::string::npos) || !step_of(line)) continue;
    auto json = base::parse_json(line, kMaxLine);
    if (!json.ok()) continue;
    const auto step = static_cast<double>(*step_of(line));
    // A loss that is not finite is null in JSON.
    auto take = [&](std::string_view key, std::vector<LossPoint>& points) {
      if (json->contains(key)) points.push_back({step, base::get_number(*json, key).value_or(std::nan(""))});
    };
    take("loss", curves.training);
    take("validation_loss", curves.validation);
  }
  return curves;
}

}  // namespace phalanx::engine::train
