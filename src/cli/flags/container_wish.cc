#include "cli/flags/container_wish.h"

#include "base/try.h"
#include "hosts/lists/host_list.h"

namespace phalanx::cli {

base::Result<ContainerWish> parse_container_wish(std::string_view text) {
  ContainerWish wish;
  const size_t equals = hosts::is_container_text(text) ? std::string_view::npos : text.find('=');
  if (equals != std::string_view::npos) {
    TRY_ASSIGN(const hosts::HostList named, hosts::parse_host_argument(text.substr(0, equals), "--container"));
    for (const hosts::HostSpec& host : named) wish.hosts.push_back(host.name);
    text.remove_prefix(equals + 1);
  }
  TRY_ASSIGN(wish.container, hosts::parse_container(text));
  return wish;
}

}  // namespace phalanx::cli
