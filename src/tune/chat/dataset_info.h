// dataset_info.json of LLaMA-Factory: where each data set lies and what its columns mean.
// Source: hiyouga/LLaMA-Factory v0.9.3, src/llamafactory/data/parser.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace phalanx::tune {

enum class Formatting { kAlpaca, kSharegpt };

// Names of columns; an empty one is not read.
struct Columns {
  std::string prompt, query, response, history;  // alpaca
  std::string chosen, rejected;                  // with ranking
  std::string messages;                          // sharegpt
  std::string system;
  std::string role_tag = "from", content_tag = "value", user_tag = "human", assistant_tag = "gpt", system_tag = "system";
  std::string observation_tag = "observation", function_tag = "function_call";
};

struct DatasetInfo {
  std::string name;
  std::string file_name;  // a file or a folder below the folder of dataset_info.json
  Formatting formatting = Formatting::kAlpaca;
  bool ranking = false;  // each record has two answers
  Columns columns;
};

// The entry `name` of the file's text. Error kConfig: it is not there (with the nearest name), or it needs what is not supported
// (hubs, images, tools, num_samples).
base::Result<DatasetInfo> find_dataset(std::string_view json, const std::string& name);

}  // namespace phalanx::tune
