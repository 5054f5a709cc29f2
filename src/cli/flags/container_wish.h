// One --container: KIND:NAME for every host, or HOST,…=KIND:NAME for the hosts named, as -H names them (ranges too). Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hosts/connect/container.h"

namespace phalanx::cli {

struct ContainerWish {
  std::vector<std::string> hosts;  // empty: every host without a wish of its own
  hosts::Container container;
};

// Errors: kUsage.
base::Result<ContainerWish> parse_container_wish(std::string_view text);

}  // namespace phalanx::cli
