// accelerate's configuration file (default_config.yaml), as accelerate launch reads it: commands/config/config_args.py, ClusterConfig
// (16cb6eb8). Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace phalanx::frontdoor {

struct AccelerateConfig {
  // Keys by their option ("num-processes", "fsdp-version"), values as Python's str() writes them. distributed_type is "distributed-type".
  std::map<std::string, std::string> values;
  std::map<std::string, int> lines;           // of the same keys, from 1
  std::vector<std::string> deepspeed_fields;  // the keys of deepspeed_config
  bool has_parallelism = false;
  std::vector<std::string> unused;  // "x.yaml:7: fsdp_config.foo": keys within a section that accelerate does not read
};

// `path` names the file in errors: kConfig, "x.yaml:3: …". An unknown key at the top is one, as it is for accelerate; so are TPU and
// SageMaker configurations.
base::Result<AccelerateConfig> parse_accelerate_config(std::string_view text, std::string_view path);

}  // namespace phalanx::frontdoor
