// Any bytes as a host list of each kind, and the rest of them as a filter over it. What is accepted keeps the promises of
// the header: nothing reads as an option of ssh, names are unique, a list folds and expands to itself.
#include <cstdint>
#include <set>
#include <string_view>

#include "base/check.h"
#include "base/name_ranges.h"
#include "hosts/lists/host_filter.h"
#include "hosts/lists/host_list.h"

using namespace phalanx;

namespace {

void check_list(const hosts::HostList& hosts) {
  PHALANX_CHECK(!hosts.empty() && hosts.size() <= hosts::kMostHosts);
  std::vector<std::string> names;
  for (const hosts::HostSpec& host : hosts) {
    PHALANX_CHECK(!host.address.empty() && host.address[0] != '-' && host.destination()[0] != '-');
    PHALANX_CHECK(host.destination().find_first_of(" \t\r\n\v\f'\"$`;&|<>()#=,*?!{}~") == std::string::npos);
    PHALANX_CHECK(!host.slots || (*host.slots >= 1 && *host.slots <= hosts::kMostSlots));
    PHALANX_CHECK(host.port >= 0 && host.port <= 65'535);
    names.push_back(host.name);
  }
  PHALANX_CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
  if (names.size() > 100) return;
  std::vector<std::string> again;
  for (const std::string& word : base::fold_names(names)) {
    if (word.find('[') != 0 || word.find(':') == std::string::npos) {
      auto expanded = base::expand_names(word, names.size());
      PHALANX_CHECK(expanded.ok());
      again.insert(again.end(), expanded->begin(), expanded->end());
    } else {
      again.push_back(word);  // "[fd00::1]:22" is a name, not a range
    }
  }
  PHALANX_CHECK(again == names);
}

void check_filter(const hosts::HostList& hosts, std::string_view filter) {
  auto in = hosts::include_hosts(hosts, filter);
  auto out = hosts::exclude_hosts(hosts, filter);
  PHALANX_CHECK(!out.ok() || in.ok());
  if (!in.ok()) return;
  PHALANX_CHECK(!in->empty() && in->size() <= hosts.size());
  for (const hosts::HostSpec& host : *in) {
    auto used = hosts::used_slots(host, 8);
    PHALANX_CHECK(!used.ok() || !used->empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  size_t cut = text.find('\0');
  std::string_view list = text.substr(0, cut);
  std::string_view filter = cut == std::string_view::npos ? std::string_view("a:0") : text.substr(cut + 1);
  for (auto& hosts : {hosts::parse_host_argument(list), hosts::parse_hostfile(list, "f"), hosts::parse_node_list(list, "L")}) {
    if (!hosts.ok()) {
      PHALANX_CHECK(!hosts.error().message.empty() && hosts.error().message.find('\n') == std::string::npos);
      continue;
    }
    check_list(*hosts);
    if (hosts->size() <= 1000) check_filter(*hosts, filter);
  }
  return 0;
}
