// The figures in the files that frameworks write about a training: LLaMA-Factory's trainer_log.jsonl, a line for every logging_steps, and
// Lightning's metrics.csv, a row for every log_every_n_steps. Pure.
//
// Sources: llamafactory/train/callbacks.py, LogCallback (ff6d4d12e); lightning/fabric/loggers/csv_logs.py (2.0.9, and 7f0c3436).
#pragma once

#include <optional>
#include <string_view>

#include "wire/rank_event.h"

namespace phalanx::logs {

// How much of a file is looked at: its beginning, where a CSV names its columns, and its end.
inline constexpr size_t kMostProgressHead = 16 << 10;
inline constexpr size_t kMostProgressTail = 64 << 10;

// {"current_steps": 5, "total_steps": 30, "loss": 1.2, …, "throughput": 903.4} of the last whole line that has a step and a loss. Lines of
// evaluations have none. `throughput` is in tokens per second, of the whole job.
std::optional<wire::RankProgress> progress_in_json_lines(std::string_view tail);

// "epoch,step,train_loss" of the last whole row that has a step and a training loss; the columns of a row are named by `head`, the
// beginning of the file. Lightning counts steps from 0. Of several losses that of a step is taken before that of an epoch, and one that is
// called loss or train_loss before others; those of validation and test never.
std::optional<wire::RankProgress> progress_in_csv(std::string_view head, std::string_view tail);

}  // namespace phalanx::logs
