// Ports that a script draws by lot, found in its text: 54000 + random.randint(0, 888), $((RANDOM % 1000 + 20000)).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace phalanx::doctor {

struct RandomPort {
  int line = 0;      // counted from 1
  std::string text;  // the line, at most 80 bytes
  int low = 0, high = 0;
};
// The first in the text; only on lines that speak of a port, and not in comments.
std::optional<RandomPort> random_port(std::string_view text);

}  // namespace phalanx::doctor
