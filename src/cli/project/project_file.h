// The project file, phalanx.yaml: defaults of the options of run under their own names, the variables of the ranks, accepted findings.
// Grammar and limits: docs/formats/project-file.md. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/flags/flags.h"

namespace phalanx::cli {

inline constexpr const char* kProjectFileName = "phalanx.yaml";
constexpr size_t kLargestProjectFile = 1u << 20;  // bytes

struct ProjectValue {
  const FlagRow* flag = nullptr;
  std::string value;  // as after the option, and checked like it; of a switch "true" or "false"
  int line = 0;       // both from 1
  int column = 0;
};

struct ProjectVariable {
  std::string name;
  std::optional<std::string> value;  // none: the value it has on this machine
  int line = 0;
  int column = 0;
};

struct ProjectFile {
  std::string path;
  std::vector<ProjectValue> values;  // in the order of the file; of a list one each
  std::vector<ProjectVariable> env;
};

// `path` names the file in errors: kConfig, "phalanx.yaml:3:9: …".
base::Result<ProjectFile> parse_project_file(std::string_view text, std::string_view path);

}  // namespace phalanx::cli
