// Golden data of the real libraries, outside the repository: ../shared/golden beside the checkout, or the folder that PHALANX_GOLDEN
// names. Tests that need it skip without it and say so.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/text.h"

namespace phalanx::tune {

inline std::string golden_folder() {
  if (const char* given = std::getenv("PHALANX_GOLDEN")) return given;
  const std::string beside = std::string(PHALANX_TEST_DATA) + "/../../../shared/golden";
  return std::filesystem::exists(beside + "/README.md") ? beside : "";
}

inline std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

inline std::vector<base::Json> read_json_lines(const std::string& path) {
  std::vector<base::Json> out;
  const std::string text = read_text(path);
  for (std::string_view line : base::split_lines(text)) {
    auto json = base::parse_json(line);
    EXPECT_TRUE(json.ok()) << path;
    if (json.ok()) out.push_back(*json);
  }
  return out;
}

}  // namespace phalanx::tune

#define PHALANX_NEEDS_GOLDEN \
  if (golden_folder().empty()) GTEST_SKIP() << "needs the golden data: ../shared/golden, or PHALANX_GOLDEN=<folder>"
