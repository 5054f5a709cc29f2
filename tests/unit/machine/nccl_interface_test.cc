// The replay of NCCL's choice against an independent transcription of its C rules, kept in C's own words (getifaddrs' linked list,
// strncmp, bit masks), over named interface sets and seeded random ones; and against real lists of the kernel's.
#include "machine/network/nccl_interface.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "machine/network/links.h"

namespace phalanx::machine {
namespace {

// ---- the transcription: misc/socket.cc ---------------------------------------------------------------------------------------
struct Entry {  // struct ifaddrs
  char name[16];
  int family;
  unsigned char address[16];
  unsigned char mask[16];
  bool running;
};

struct NetIf {
  char prefix[64];
  int port;
};

int parse_list(const char* string, NetIf* list, int most) {
  if (!string) return 0;
  const char* ptr = string;
  int count = 0, length = 0;
  char c;
  do {
    c = *ptr;
    if (c == ':') {
      if (length > 0) {
        list[count].prefix[length] = '\0';
        list[count].port = atoi(ptr + 1);
        count++;
        length = 0;
      }
      while (c != ',' && c != '\0') c = *(++ptr);
    } else if (c == ',' || c == '\0') {
      if (length > 0) {
        list[count].prefix[length] = '\0';
        list[count].port = -1;
        count++;
        length = 0;
      }
    } else {
      list[count].prefix[length] = c;
      length++;
    }
    ptr++;
  } while (count < most && c);
  return count;
}

bool match(const char* name, const NetIf* list, int count, bool exact) {
  if (count == 0) return true;
  for (int i = 0; i < count; i++) {
    size_t n = exact ? strlen(name) + 1 : strlen(list[i].prefix);
    if (strncmp(name, list[i].prefix, n) == 0) return true;
  }
  return false;
}

std::vector<const Entry*> find_interfaces(const char* list, const std::vector<Entry>& all, int family, bool running_only, int most) {
  NetIf user[16];
  bool no = list && list[0] == '^';
  if (no) list++;
  bool exact = list && list[0] == '=';
  if (exact) list++;
  int count = parse_list(list, user, 16);
  std::vector<const Entry*> found;
  for (const Entry& e : all) {
    if (static_cast<int>(found.size()) >= most) break;
    if (running_only && !e.running) continue;
    if (family != -1 && e.family != family) continue;
    static const unsigned char kLoopback[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    if (e.family == AF_INET6 && memcmp(e.address, kLoopback, 16) == 0) continue;
    if (!(match(e.name, user, count, exact) ^ no)) continue;
    bool duplicate = false;
    for (const Entry* f : found)
      if (strcmp(f->name, e.name) == 0) duplicate = true;
    if (!duplicate) found.push_back(&e);
  }
  return found;
}

std::vector<const Entry*> match_subnet(const std::vector<Entry>& all, int family, const unsigned char* remote) {
  for (const Entry& e : all) {
    if (e.family != family) continue;
    bool same = true;
    for (int i = 0; i < (family == AF_INET ? 4 : 16); i++)
      if ((e.address[i] & e.mask[i]) != (remote[i] & e.mask[i])) same = false;
    if (same) return {&e};
  }
  return {};
}

struct Env {
  const char* ifname = nullptr;
  const char* family = nullptr;
  const char* comm_id = nullptr;  // numeric
  int version = 21805;
};

std::vector<const Entry*> transcription(const std::vector<Entry>& all, const Env& env, int most) {
  bool running = env.version >= 22800;
  int family = -1;
  if (env.family && strcmp(env.family, "AF_INET") == 0) family = AF_INET;
  else if (env.family && strcmp(env.family, "AF_INET6") == 0) family = AF_INET6;
  if (env.ifname && strlen(env.ifname) > 1) return find_interfaces(env.ifname, all, family, running, most);
  auto found = find_interfaces("ib", all, family, running, most);
  if (found.empty() && env.comm_id) {
    unsigned char remote[16];
    int kind = strchr(env.comm_id, ':') ? AF_INET6 : AF_INET;
    inet_pton(kind, env.comm_id, remote);
    found = match_subnet(all, kind, remote);
  }
  if (running) {
    if (found.empty()) found = find_interfaces("^docker,lo,virbr", all, family, true, most);
    if (found.empty()) found = find_interfaces("docker", all, family, true, most);
    if (found.empty()) found = find_interfaces("lo", all, family, true, most);
    if (found.empty()) found = find_interfaces("virbr", all, family, true, most);
  } else {
    if (found.empty()) found = find_interfaces("^docker,lo", all, family, false, most);
    if (found.empty()) found = find_interfaces("docker", all, family, false, most);
    if (found.empty()) found = find_interfaces("lo", all, family, false, most);
  }
  return found;
}

// ---- sets -----------------------------------------------------------------------------------------------------------------------
// "eth0 10.0.0.1/24" or "!eth0 …" for one that does not run; in getifaddrs' order (IPv4 first, then IPv6).
using Set = std::vector<std::string>;

Entry entry_of(const std::string& text) {
  Entry e{};
  std::string words = text;
  e.running = words[0] != '!';
  if (!e.running) words.erase(0, 1);
  size_t blank = words.find(' '), slash = words.find('/');
  strncpy(e.name, words.substr(0, blank).c_str(), sizeof(e.name) - 1);
  std::string address = words.substr(blank + 1, slash - blank - 1);
  e.family = address.find(':') == std::string::npos ? AF_INET : AF_INET6;
  inet_pton(e.family, address.c_str(), e.address);
  for (int bit = 0; bit < atoi(words.c_str() + slash + 1); ++bit) e.mask[bit / 8] |= static_cast<unsigned char>(0x80 >> (bit % 8));
  return e;
}

// The same set as facts, as the probe groups it.
std::vector<Interface> interfaces_of(const Set& set) {
  std::vector<AddressLine> lines;
  std::vector<Interface> all;
  std::map<std::string, bool> running;
  for (const std::string& text : set) {
    Entry e = entry_of(text);
    std::string name = e.name;
    AddressLine line;
    line.interface = name.substr(0, name.find(':'));
    if (line.interface != name) line.address.label = name;
    char address[INET6_ADDRSTRLEN];
    inet_ntop(e.family, e.address, address, sizeof(address));
    line.address.address = address;
    line.address.prefix = atoi(text.c_str() + text.find('/') + 1);
    line.address.v6 = e.family == AF_INET6;
    running[line.interface] = e.running;
    lines.push_back(line);
  }
  for (const std::string& name : interface_order(lines)) {
    Interface i;
    i.name = name;
    i.running = running[name];
    for (const AddressLine& line : lines)
      if (line.interface == name) i.addresses.push_back(line.address);
    all.push_back(std::move(i));
  }
  return all;
}

std::string told(const Set& set, const Env& env) {
  std::string text = std::string("IFNAME=") + (env.ifname ? env.ifname : "-") + " FAMILY=" + (env.family ? env.family : "-") +
                     " COMM_ID=" + (env.comm_id ? env.comm_id : "-") + " version " + std::to_string(env.version) + ":";
  for (const std::string& s : set) text += " [" + s + "]";
  return text;
}

void expect_agreement(const Set& set, const Env& env) {
  SCOPED_TRACE(told(set, env));
  std::vector<Entry> entries;
  for (const std::string& text : set) entries.push_back(entry_of(text));
  std::vector<ListedAddress> listed = listed_addresses(interfaces_of(set));
  ASSERT_EQ(listed.size(), entries.size());
  for (size_t i = 0; i < listed.size(); ++i) ASSERT_EQ(listed[i].name, entries[i].name) << "the order of getifaddrs is lost";
  NcclSettings settings;
  settings.ifname = env.ifname ? env.ifname : "";
  settings.family = env.family ? env.family : "";
  settings.comm_id = env.comm_id ? env.comm_id : "";
  settings.version = env.version;
  for (int most : {1, 16}) {
    std::vector<const Entry*> theirs = transcription(entries, env, most);
    std::vector<ListedAddress> ours = nccl_interfaces(listed, settings, static_cast<size_t>(most)).interfaces;
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t i = 0; i < ours.size(); ++i) {
      char address[INET6_ADDRSTRLEN];
      inet_ntop(theirs[i]->family, theirs[i]->address, address, sizeof(address));
      EXPECT_EQ(ours[i].name, theirs[i]->name);
      EXPECT_EQ(ours[i].address, address);
    }
  }
}

const Set kSets[] = {
    {"lo 127.0.0.1/8", "eth0 10.0.0.1/24", "lo ::1/128", "eth0 fe80::1/64"},
    {"lo 127.0.0.1/8", "virbr0 192.168.122.1/24", "eno1 10.0.0.1/24"},
    {"lo 127.0.0.1/8", "!virbr0 192.168.122.1/24", "eno1 10.0.0.1/24"},
    {"lo 127.0.0.1/8", "docker0 172.17.0.1/16", "eth0 10.0.0.1/24"},
    {"lo 127.0.0.1/8", "docker0 172.17.0.1/16"},
    {"lo 127.0.0.1/8", "!docker0 172.17.0.1/16", "lo ::1/128"},
    {"lo 127.0.0.1/8", "virbr0 192.168.122.1/24"},
    {"lo 127.0.0.1/8", "virbr0 192.168.122.1/24", "docker0 172.17.0.1/16"},
    {"lo 127.0.0.1/8", "lo ::1/128"},
    {"lo ::1/128"},
    {"lo 127.0.0.1/8", "eth0 10.0.0.1/24", "ib0 10.1.0.1/24", "ib1 10.2.0.1/24"},
    {"lo 127.0.0.1/8", "eth0 10.0.0.1/24", "!ib0 10.1.0.1/24"},
    {"lo 127.0.0.1/8", "ibp1s0 10.1.0.1/16", "bond0 172.16.12.8/24", "bond0 fe80::5/64"},
    {"lo 127.0.0.1/8", "ibmgmt 192.168.1.1/24", "eth0 10.0.0.1/24"},
    {"eth0 10.0.0.1/24", "eth01 10.0.1.1/24", "eth1 10.0.2.1/24"},
    {"eth01 10.0.1.1/24", "eth0 10.0.0.1/24"},
    {"eth0 10.0.0.1/24", "eth0:1 10.0.0.2/24", "eth1 10.0.1.1/24"},
    {"eth0 10.0.0.1/24", "eth0 10.0.0.9/24", "eth1 10.9.0.1/24"},
    {"lo 127.0.0.1/8", "eth0 fe80::1/64"},
    {"lo 127.0.0.1/8", "eth0 fd00::1/64", "eth0 fe80::1/64"},
    {"lo 127.0.0.1/8", "eth1 10.0.1.1/24", "eth0 fd00::1/64", "eth1 fd00:1::1/64"},
    {"lo 127.0.0.1/8", "tailscale0 100.64.0.7/32", "eno1 10.0.0.1/24"},
    {"lo 127.0.0.1/8", "cni0 10.244.0.1/24", "flannel.1 10.244.0.0/32", "ens5 10.0.0.1/24"},
    {"lo 127.0.0.1/8", "veth1a2b 169.254.3.4/16", "team0 10.0.0.1/24"},
    {"local0 10.0.0.1/24", "lowpan0 10.0.1.1/24", "dockerx 10.0.2.1/24"},
    {"lo 127.0.0.1/8", "br-5d2f 172.18.0.1/16", "bond0 10.0.0.1/24"},
    {"lo 127.0.0.1/8", "!eth0 10.0.0.1/24", "!eth1 10.0.1.1/24"},
    {"!lo 127.0.0.1/8", "!eth0 10.0.0.1/24"},
    {"lo 127.0.0.1/8", "!eno1 10.0.0.1/24", "wlan0 192.168.1.7/24"},
    {"lo 127.0.0.1/8", "ib0 10.1.0.1/24", "ib0 10.1.0.2/24", "ib0:1 10.1.0.3/24", "ib0 fe80::1/64"},
    {"lo 127.0.0.1/8", "ens1f0 10.0.0.1/31", "ens1f1 10.0.0.3/31", "ens2f0 10.0.0.5/31"},
    {"lo 127.0.0.1/8", "eth0.100 10.0.0.1/24", "eth0 10.0.1.1/24"},
    {"lo 127.0.0.1/8", "eth0 192.169.20.14/24", "eth1 192.168.20.14/24"},
    {"lo 127.0.0.1/8", "lo 10.99.0.1/32", "eth0 10.0.0.1/24"},
    {"lo 127.0.0.1/8", "lo 10.99.0.1/32"},
    {"lo 127.0.0.1/8", "ib0 fe80::a/64"},
    {"lo 127.0.0.1/8", "hsn0 10.150.0.1/16", "hsn1 10.150.0.2/16", "nmn0 10.252.0.1/17"},
    {"lo 127.0.0.1/8", "enp225s0f0np0 10.0.0.1/24", "enp225s0f1np1 10.0.1.1/24"},
    {"lo 127.0.0.1/8", "docker0 172.17.0.1/16", "docker_gwbridge 172.18.0.1/16", "lo ::1/128", "docker0 fe80::2/64"},
    {"lo 127.0.0.1/8", "virbr0 192.168.122.1/24", "virbr1 192.168.123.1/24", "!eth0 10.0.0.1/24"},
    {"lo 127.0.0.1/8", "ibs1 10.3.0.1/24", "docker0 172.17.0.1/16", "eth0 10.0.0.1/24", "ibs1 fd00:3::1/64"},
    {"a 10.0.0.1/8", "b 10.1.0.1/16", "c 10.1.1.1/24"},
    {},
};
const char* const kNames[] = {nullptr, "",           "e",       "eth0",       "eth",          "=eth0", "^eth0",     "^=eth0",
                              "ib",    "^docker,lo", "bond0",   "=eth0,eth1", "eth0,ib0",     "eth9",  "^",         "^,",
                              "=",     "virbr",      "eth0:1",  "=eth0:1",    ",,eth1,",      "=lo",   "^=lo,eth0", " eth0",
                              "lo",    "^lo,docker", "=ib0,ib", "en,eth,ib",  "^ib,docker,lo"};

TEST(NcclInterface, AgreesWithTheTranscriptionOnNamedSets) {
  static_assert(std::size(kSets) >= 40);
  for (const Set& set : kSets)
    for (const char* name : kNames)
      for (const char* family : {static_cast<const char*>(nullptr), "AF_INET", "AF_INET6", "inet"})
        for (int version : {21003, 22707, 22803, 23007}) expect_agreement(set, {name, family, nullptr, version});
  for (const Set& set : kSets)
    for (const char* id : {"10.1.1.77", "10.0.1.9", "192.168.20.99", "172.17.5.5", "fd00::77", "203.0.113.4"})
      for (int version : {21003, 23007}) expect_agreement(set, {nullptr, nullptr, id, version});
}

TEST(NcclInterface, AgreesWithTheTranscriptionOnRandomSets) {
  std::mt19937 random(20240817);
  auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const char* names[] = {"lo", "eth0", "eth01", "eth1", "ib0", "ib1", "docker0", "virbr0", "bond0", "ens5f0", "lo0", "team0", "i", "virbr"};
  int agreed = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> chosen;
    for (const char* n : names)
      if (pick(3) == 0) chosen.insert(chosen.begin() + pick(static_cast<int>(chosen.size()) + 1), n);
    Set v4, v6;
    for (const std::string& n : chosen) {
      std::string running = pick(4) == 0 ? "!" : "";
      int kind = pick(8);  // most have IPv4, some both, some neither
      for (int i = 0; i <= (kind < 6 ? pick(2) : -1); ++i)
        v4.push_back(running + n + " 10." + std::to_string(pick(3)) + "." + std::to_string(pick(3)) + "." + std::to_string(1 + pick(250)) +
                     "/" + std::to_string(8 * (1 + pick(4))));
      if (kind >= 4) v6.push_back(running + n + (n == "lo" ? " ::1/128" : " fd00:" + std::to_string(pick(3)) + "::1/64"));
    }
    v4.insert(v4.end(), v6.begin(), v6.end());
    const char* ids[] = {nullptr, nullptr, "10.1.2.3", "fd00:1::9"};
    expect_agreement(v4, {kNames[pick(static_cast<int>(std::size(kNames)))],
                          pick(3)   ? nullptr
                          : pick(2) ? "AF_INET"
                                    : "AF_INET6",
                          ids[pick(4)], pick(2) ? 21805 : 22907});
    if (HasFatalFailure() || HasNonfatalFailure()) return;
    ++agreed;
  }
  EXPECT_EQ(agreed, 3000);
}

// ---- what the rest of the header says ------------------------------------------------------------------------------------------
TEST(NcclInterface, TheBootstrapPutsTheCommunicatorsSubnetFirst) {
  auto listed = listed_addresses(interfaces_of({"lo 127.0.0.1/8", "ib0 10.1.0.1/24", "eth0 10.0.0.1/24"}));
  NcclSettings s = nccl_settings({{"NCCL_COMM_ID", "10.0.0.9:29500"}, {"NCCL_SOCKET_IFNAME", "ib0"}}, 22005);
  EXPECT_EQ(s.comm_id, "10.0.0.9");
  EXPECT_EQ(nccl_bootstrap(listed, s).interfaces.at(0).name, "eth0");
  EXPECT_EQ(nccl_interfaces(listed, s).interfaces.at(0).name, "ib0");
  EXPECT_EQ(nccl_settings({{"NCCL_COMM_ID", "[fd00::1%eth0]:1"}}, 0).comm_id, "fd00::1");
}

TEST(NcclInterface, Versions) {
  EXPECT_EQ(nccl_version("2.20.5+cuda12.4"), 22005);
  EXPECT_EQ(nccl_version("2.8.4"), 20804);
  EXPECT_EQ(nccl_version("2.28"), 22800);
  EXPECT_EQ(nccl_version(""), 0);
  EXPECT_EQ(nccl_version("unknown"), 0);
}

TEST(GlooInterface, WholeNamesElseTheOwnName) {
  auto interfaces = interfaces_of({"lo 127.0.0.1/8", "eth0 10.0.0.1/24", "eth01 10.0.1.1/24", "eth0 fe80::1/64"});
  EXPECT_EQ(gloo_choice(interfaces, "eth01", {}).address, "10.0.1.1");
  EXPECT_EQ(gloo_choice(interfaces, "eth", {}).interface, "") << "a prefix is no name for Gloo";
  EXPECT_EQ(gloo_choice(interfaces, "", {"10.0.0.1"}).interface, "eth0");
  EXPECT_EQ(gloo_choice(interfaces, "", {"127.0.1.1"}).address, "127.0.1.1");
  EXPECT_EQ(gloo_choice(interfaces, "", {"127.0.1.1"}).interface, "lo");
  EXPECT_EQ(gloo_choice(interfaces, "", {"8.8.8.8"}).address, "127.0.0.1") << "torch falls back to the loopback address";
  EXPECT_EQ(own_name_choice(interfaces, "c10d", {}).why, "own name does not resolve");
}

TEST(HcaList, NamesAndPorts) {
  EXPECT_TRUE(nccl_list_takes("mlx5_1", "mlx5_10", 1)) << "a prefix";
  EXPECT_FALSE(nccl_list_takes("=mlx5_1", "mlx5_10", 1));
  EXPECT_TRUE(nccl_list_takes("=mlx5_1:1", "mlx5_1", 1));
  EXPECT_FALSE(nccl_list_takes("=mlx5_1:2", "mlx5_1", 1));
  EXPECT_FALSE(nccl_list_takes("^mlx5_bond_0", "mlx5_bond_0", 1));
  EXPECT_TRUE(nccl_list_takes("^mlx5_bond_0", "mlx5_0", 1));
  EXPECT_TRUE(nccl_list_takes("", "mlx5_0", 1));
}

}  // namespace
}  // namespace phalanx::machine
