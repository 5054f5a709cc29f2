#include "machine/network/nccl_interface.h"

#include <algorithm>

#include "base/text.h"
#include "machine/network/text.h"

namespace phalanx::machine {
namespace {

constexpr int kSkipsIdle = 22800;  // the first version that asks for IFF_RUNNING and knows virbr
constexpr size_t kMostEntries = 16, kMostHcas = 32;

struct Entry {
  std::string name;
  int port = -1;
};

// parseStringList of misc/utils.cc: entries between commas; what follows ":" is a port; empty entries do not count.
std::vector<Entry> entries(std::string_view list, size_t most) {
  std::vector<Entry> out;
  for (std::string_view part : base::split(list, ',')) {
    size_t colon = part.find(':');
    std::string_view name = part.substr(0, colon);
    if (name.empty() || out.size() == most) continue;
    Entry entry{std::string(name), -1};
    if (colon != std::string_view::npos) {
      std::string_view digits = part.substr(colon + 1);
      digits = digits.substr(0, digits.find(':'));
      base::Result<int64_t> port = base::parse_int(digits, 0, 65535);
      entry.port = port.ok() ? static_cast<int>(*port) : digits.empty() ? -1 : 0;
    }
    out.push_back(std::move(entry));
  }
  return out;
}

// A list as NCCL reads it: "^" and "=" first, then the entries. No entry at all matches everything.
struct List {
  bool inverted = false, exact = false;
  std::vector<Entry> wanted;

  explicit List(std::string_view text, size_t most = kMostEntries) {
    if (!text.empty() && text[0] == '^') inverted = true, text.remove_prefix(1);
    if (!text.empty() && text[0] == '=') exact = true, text.remove_prefix(1);
    wanted = entries(text, most);
  }
  bool takes(std::string_view name, int port) const {
    bool matched = wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const Entry& e) {
                     bool named = exact ? name == e.name : name.substr(0, e.name.size()) == e.name;
                     return named && (port < 0 || e.port < 0 || port == e.port);
                   });
    return matched != inverted;
  }
};

std::vector<ListedAddress> find(const std::vector<ListedAddress>& listed, std::string_view list, const NcclSettings& s, size_t most) {
  List wanted(list);
  bool only_running = s.version == 0 || s.version >= kSkipsIdle;
  std::vector<ListedAddress> found;
  for (const ListedAddress& a : listed) {
    if (found.size() == most) break;
    if (only_running && !a.running) continue;
    if ((s.family == "AF_INET" && a.v6) || (s.family == "AF_INET6" && !a.v6)) continue;
    if (a.v6 && is_loopback_address(a.address)) continue;
    if (!wanted.takes(a.name, -1)) continue;
    bool known = std::any_of(found.begin(), found.end(), [&](const ListedAddress& f) { return f.name == a.name; });
    if (!known) found.push_back(a);
  }
  return found;
}

std::vector<ListedAddress> in_subnet_of(const std::vector<ListedAddress>& listed, const std::string& remote) {
  bool v6 = remote.find(':') != std::string::npos;
  for (const ListedAddress& a : listed)
    if (a.v6 == v6 && network_of(a.address, a.prefix) == network_of(remote, a.prefix)) return {a};
  return {};
}

const ListedAddress* with_address(const std::vector<ListedAddress>& listed, const std::string& address) {
  auto found = std::find_if(listed.begin(), listed.end(), [&](const ListedAddress& a) { return a.address == address; });
  if (found == listed.end() && is_loopback_address(address))  // the whole of 127.0.0.0/8 is on lo
    found = std::find_if(listed.begin(), listed.end(), [](const ListedAddress& a) { return is_loopback_address(a.address); });
  return found == listed.end() ? nullptr : &*found;
}

std::string value_of(const std::map<std::string, std::string>& environment, const char* name) {
  auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

}  // namespace

std::vector<ListedAddress> listed_addresses(const std::vector<Interface>& interfaces) {
  std::vector<ListedAddress> all;
  for (bool v6 : {false, true})
    for (const Interface& i : interfaces)
      for (const InterfaceAddressFact& a : i.addresses)
        if (a.v6 == v6) all.push_back({a.label.empty() ? i.name : a.label, i.name, a.address, a.prefix, v6, i.running});
  return all;
}

NcclSettings nccl_settings(const std::map<std::string, std::string>& environment, int version) {
  NcclSettings s;
  s.ifname = value_of(environment, "NCCL_SOCKET_IFNAME");
  s.family = value_of(environment, "NCCL_SOCKET_FAMILY");
  s.version = version;
  std::string id = value_of(environment, "NCCL_COMM_ID");
  if (id.size() > 1) {
    size_t close = id.find(']');
    std::string host = id[0] == '[' ? id.substr(1, close == std::string::npos ? close : close - 1) : id.substr(0, id.find(':'));
    host = host.substr(0, host.find('%'));
    if (is_address(host)) s.comm_id = host;
  }
  return s;
}

int nccl_version(std::string_view text) {
  std::vector<std::string_view> parts = base::split(text.substr(0, text.find_first_not_of("0123456789.")), '.');
  int version = 0;
  for (size_t i = 0; i < 3; ++i) {
    base::Result<int64_t> part = base::parse_int(i < parts.size() ? parts[i] : "0", 0, 99);
    if (!part.ok()) return 0;
    version = version * 100 + static_cast<int>(*part);
  }
  return version;
}

NcclFound nccl_interfaces(const std::vector<ListedAddress>& listed, const NcclSettings& s, size_t most) {
  if (s.ifname.size() > 1) return {find(listed, s.ifname, s, most), "NCCL_SOCKET_IFNAME=" + s.ifname};
  NcclFound found{find(listed, "ib", s, most), "the first whose name begins with ib"};
  if (found.interfaces.empty() && !s.comm_id.empty()) found = {in_subnet_of(listed, s.comm_id), "the subnet of NCCL_COMM_ID"};
  bool virbr = s.version == 0 || s.version >= kSkipsIdle;
  if (found.interfaces.empty())
    found = {find(listed, virbr ? "^docker,lo,virbr" : "^docker,lo", s, most), "the first that is not docker or lo"};
  for (const char* last : {"docker", "lo", "virbr"})
    if (found.interfaces.empty() && (virbr || last != std::string_view("virbr")))
      found = {find(listed, last, s, most), std::string("nothing better than ") + last};
  return found;
}

NcclFound nccl_bootstrap(const std::vector<ListedAddress>& listed, const NcclSettings& s) {
  if (!s.comm_id.empty()) return {in_subnet_of(listed, s.comm_id), "the subnet of NCCL_COMM_ID"};
  return nccl_interfaces(listed, s, 1);
}

bool nccl_list_takes(std::string_view list, std::string_view name, int port) { return List(list, kMostHcas).takes(name, port); }

SocketChoice nccl_choice(const std::vector<Interface>& interfaces, const NcclSettings& settings) {
  NcclFound found = nccl_bootstrap(listed_addresses(interfaces), settings);
  if (found.interfaces.empty()) return {"nccl", "", "", found.rule};
  return {"nccl", found.interfaces[0].name, found.interfaces[0].address, found.rule};
}

SocketChoice gloo_choice(const std::vector<Interface>& interfaces, const std::string& ifname, const std::vector<std::string>& own) {
  if (ifname.empty()) return own_name_choice(interfaces, "gloo", own);
  std::string name = ifname.substr(0, ifname.find(','));
  for (const ListedAddress& a : listed_addresses(interfaces))
    if (a.name == name) return {"gloo", a.name, a.address, "GLOO_SOCKET_IFNAME=" + ifname};
  return {"gloo", "", "", "GLOO_SOCKET_IFNAME=" + ifname};
}

SocketChoice own_name_choice(const std::vector<Interface>& interfaces, const std::string& library, const std::vector<std::string>& own) {
  std::vector<ListedAddress> listed = listed_addresses(interfaces);
  for (const std::string& address : own)
    if (const ListedAddress* a = with_address(listed, address)) return {library, a->name, address, "own name"};
  if (library == "gloo") return {library, "lo", "127.0.0.1", "own name resolves to no address of this machine"};
  return {library, "", own.empty() ? "" : own[0], own.empty() ? "own name does not resolve" : "own name"};
}

std::vector<SocketChoice> socket_choices(const NetworkFacts& facts, const std::map<std::string, std::string>& environment, int version) {
  std::vector<std::string> own;
  if (!facts.names.empty()) own = facts.names[0].addresses;
  std::vector<SocketChoice> all;
  all.push_back(nccl_choice(facts.interfaces, nccl_settings(environment, version)));
  if (!facts.names.empty()) {
    all.push_back(gloo_choice(facts.interfaces, value_of(environment, "GLOO_SOCKET_IFNAME"), own));
    all.push_back(own_name_choice(facts.interfaces, "c10d", own));
  }
  return all;
}

}  // namespace phalanx::machine
