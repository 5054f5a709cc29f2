// What is done with checkpoints, on a folder furnished with some, and what must hold afterwards.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "engine/checkpoint/saver.h"
#include "faults.h"

namespace phalanx::engine::checkpoint::faulty {

namespace fs = std::filesystem;

class Root {
 public:
  Root() : path_(fs::exists("/dev/shm") ? "/dev/shm/phalanx-faults-XXXXXX" : fs::temp_directory_path() / "phalanx-faults-XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~Root() { fs::remove_all(path_); }
  std::string operator/(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

struct Operation {
  std::string name;
  std::function<base::Status(const std::string& root, Saver* saver)> act;
  std::set<int64_t> always = {1, 2, 3};  // whole afterwards, whatever happened
  bool with_saver = false;               // opened before the calls are watched
  int64_t keep = 0;
  bool exchange = true;
  // After it has ended; the complaint, or "".
  std::function<std::string(const std::string& root, const base::Status& status, const std::set<int64_t>& steps)> check = {};
};

SaveRequest request(int64_t step);
base::Status save(Saver& saver, SaveRequest what, Removals* removals = nullptr);
std::unique_ptr<Saver> open_saver(const std::string& folder, const std::string& token, int64_t keep);
// Checkpoints 1 (the best), 2 and 3; leftovers of a crash; another tool's folder; a merged model.
void furnish(const std::string& root);
// The steps whose checkpoints are whole: every byte is hashed.
std::set<int64_t> whole(const std::string& folder);

std::vector<Operation> operations();
// On a copy of `pattern` at `root`, with a fault at call `at` (faults::watch).
faults::Seen carry_out(const Operation& operation, const std::string& pattern, const std::string& root, int at, int error,
                       base::Status& status);
// The rest of a run's folder after an operation that met a fault, and whether the next start finds everything. "": all is well.
std::string complaint(const Operation& operation, const std::string& root, const base::Status& status);

}  // namespace phalanx::engine::checkpoint::faulty
