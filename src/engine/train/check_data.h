// phalanx-train --check-data: the data of a config, walked before any rank starts, and what was found as text or JSON.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/language.h"
#include "base/result.h"
#include "engine/data/findings.h"
#include "engine/data/open_set.h"
#include "engine/train/config.h"

namespace phalanx::engine::train {

struct CheckDataOptions {
  bool json = false;
  int workers = 0;                      // of the walk by threads; 0: data.workers, at least 2
  std::vector<int> worlds{1, 2, 4, 8};  // for which the steps of an epoch are told
};

// Steps of an epoch on `world` ranks; without steps the batch cannot be shared, or the data is too short.
struct WorldSteps {
  int world = 1;
  int64_t steps = 0;
  int64_t fewest_own = 0, most_own = 0;  // in which a rank has rows: fewest and most over the ranks
  std::string batch;                     // "4 sequences × 2 ranks × …", or why it is not possible
};

struct CheckedSet {
  std::string name;  // "training" or "validation"
  data::WalkReport report;
};

struct DataReport {
  std::vector<data::FileOfSet> files;
  std::vector<CheckedSet> sets;
  std::vector<data::DataFinding> findings;  // of files and batches
  std::vector<WorldSteps> worlds;           // of training; without steps where a stream's are not known: computed from the walk
  bool clean() const;                       // no errors
};

// Error: only what makes a check impossible (no files named). Progress goes to stderr at least every 60 s.
base::Result<DataReport> check_data(const Config& config, const CheckDataOptions& options);
std::string to_text(const DataReport& report, base::Language language = base::Language::kEnglish);
base::Json to_json(const DataReport& report);

// The whole command: `arguments` without --check-data itself. Prints the report; 0, or 2 when something is wrong.
base::Result<int> check_data_command(const std::vector<std::string>& arguments);
// `--tokenize OUT FILE …`: each file becomes one document of byte tokens (data/files/token_writer.h).
base::Result<int> tokenize_command(const std::vector<std::string>& arguments);

}  // namespace phalanx::engine::train
