#include "oracle.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "os/files.h"
#include "ranks.h"

using namespace phalanx;

const phalanx::base::Json* optim_oracle() {
  static const std::optional<base::Json> answer = []() -> std::optional<base::Json> {
    if (std::system("/usr/bin/python3 -c 'import torch' 2>/dev/null") != 0) return std::nullopt;
    ranks::TempFolder folder;
    const std::string file = folder / "answer";
    if (std::system(("/usr/bin/python3 '" PHALANX_TRAIN_TESTS "/optim/oracle.py' > '" + file + "'").c_str()) != 0) {
      ADD_FAILURE() << "tests/train/optim/oracle.py failed";
      return std::nullopt;
    }
    return base::parse_json(os::read_file(file, 64 << 20).value(), 64 << 20).value();
  }();
  return answer ? &*answer : nullptr;
}
