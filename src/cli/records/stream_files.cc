#include "cli/records/stream_files.h"

#include <fmt/format.h>

namespace phalanx::cli {

std::string StreamFiles::folder_of(uint32_t rank) const { return fmt::format("{}/attempt_{}/{}", folder_, attempt_, rank); }

void StreamFiles::started(int attempt, size_t ranks) {
  attempt_ = attempt;
  ranks_.clear();
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const std::string out = folder_of(rank) + "/stdout.log", err = folder_of(rank) + "/stderr.log";
    for (const std::string& path : {out, err}) files_.replace(path, "");  // which makes the folder; an empty file is torchrun's, too
    ranks_.emplace_back(files_.log(out, logs::Form::kText, most_bytes_), files_.log(err, logs::Form::kText, most_bytes_));
  }
}

void StreamFiles::output(const wire::Output& output) {
  if (output.rank >= ranks_.size() || output.kind == wire::OutputKind::kProgress) return;
  const auto& [out, err] = ranks_[output.rank];
  files_.append(output.stream == wire::Stream::kStderr ? err : out, output.data);
}

void StreamFiles::exited(const wire::Exited& exited) {
  if (exited.rank < ranks_.size() && !exited.error_file.empty()) files_.replace(folder_of(exited.rank) + "/error.json", exited.error_file);
}

}  // namespace phalanx::cli
