#include "cli/flags/gpu_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::cli {
namespace {

constexpr int64_t kMostIndex = 1023;

base::Result<std::pair<std::string, std::vector<int>>> parse_host(std::string_view word) {
  size_t colon = word.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == word.size())
    return base::fail(base::ErrorKind::kUsage, fmt::format("{} is not HOST:INDEX,...", base::quote(word)))
        .with_hint("write --gpus auto, --gpus 4, or --gpus <host>:0,2@<host>:0,1");
  std::pair<std::string, std::vector<int>> out{std::string(word.substr(0, colon)), {}};
  for (std::string_view index : base::split(word.substr(colon + 1), ',')) {
    TRY_ASSIGN(int64_t number, base::parse_int(index, 0, kMostIndex));
    if (std::find(out.second.begin(), out.second.end(), static_cast<int>(number)) != out.second.end())
      return base::fail(base::ErrorKind::kUsage, fmt::format("GPU {} is named twice in {}", index, base::quote(word)));
    out.second.push_back(static_cast<int>(number));
  }
  return out;
}

}  // namespace

base::Result<job::GpuRequest> parse_gpu_request(std::string_view value, int64_t most) {
  job::GpuRequest wish;
  if (value == "auto") return wish;
  if (value.find(':') == std::string_view::npos) {
    TRY_ASSIGN(int64_t count, base::parse_int(value, 1, most));
    wish.count = static_cast<int>(count);
    return wish;
  }
  for (std::string_view word : base::split(value, '@')) {
    TRY_ASSIGN(auto host, parse_host(word));
    wish.lists.push_back(std::move(host));
  }
  return wish;
}

void add_gpu_request(std::string_view value, job::GpuRequest& wish) {
  base::Result<job::GpuRequest> parsed = parse_gpu_request(value, INT32_MAX);
  PHALANX_CHECK(parsed.ok());
  wish.count = parsed->count;
  wish.lists = std::move(parsed->lists);
}

}  // namespace phalanx::cli
