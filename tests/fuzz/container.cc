// Any bytes as a container's text form, and the rest of them as what its host writes on stderr and about itself. What is accepted reads
// back as it was written, and gives no shell and no engine anything else to read.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "hosts/connect/container_end.h"
#include "hosts/connect/container_start.h"
#include "machine/outside.h"

using namespace phalanx;

namespace {

constexpr std::string_view kRead = " \t\n\v\f\r'\"$`;&|<>()#=,*?!{}[]~\\";

void check_start(const hosts::Container& container) {
  PHALANX_CHECK(hosts::to_text(container).size() <= hosts::kLongestContainer);
  if (container.kind != hosts::Container::Kind::kCommand && container.kind != hosts::Container::Kind::kApptainer)
    PHALANX_CHECK(container.what[0] != '-' && container.what.find_first_of(kRead) == std::string::npos);
  hosts::Target target{.name = "h", .destination = "h", .container = container};
  target.container.directory = "/d";
  const std::string line = hosts::far_command(target, "0123abcd");
  // Between two single quotes nothing is left that a login shell could read.
  constexpr std::string_view kBegin = "exec sh -c '", kEnd = "'";
  PHALANX_CHECK(line.starts_with(kBegin) && line.ends_with(kEnd));
  const std::string_view inside = std::string_view(line).substr(kBegin.size(), line.size() - kBegin.size() - kEnd.size());
  PHALANX_CHECK(inside.find_first_of("'!\n") == std::string_view::npos);
}

void check_end(const hosts::Container& container, const std::string& said) {
  const hosts::Target target{.name = "h", .destination = "h", .container = container};
  for (bool started : {false, true})
    if (auto error = hosts::explain_container(target, {125 << 8, said}, started))
      PHALANX_CHECK(error->render().find('\x1b') == std::string::npos && error->hint.find('\n') == std::string::npos);
  PHALANX_CHECK(hosts::without_marks(said).find("PHALANX-CONTAINER ") != 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t cut = std::min(text.find('\0'), text.size());
  const std::string said(text.substr(std::min(cut + 1, text.size())));
  const machine::Outside outside = machine::parse_outside(said);
  PHALANX_CHECK(outside.init >= 0 && outside.gpus.value_or(0) >= 0 && outside.net_space.size() <= 32 && outside.pid_space.size() <= 32);
  const auto container = hosts::parse_container(text.substr(0, cut));
  if (!container.ok()) {
    PHALANX_CHECK(!container.error().message.empty() && container.error().message.find('\n') == std::string::npos);
    return 0;
  }
  PHALANX_CHECK(hosts::to_text(*container) == text.substr(0, cut));
  check_start(*container);
  check_end(*container, said);
  return 0;
}
