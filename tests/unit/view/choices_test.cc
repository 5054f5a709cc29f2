// What `phalanx plan` chooses, as it is shown, for clusters an expert would have an opinion on. Every one is a healthy cluster with
// one change; its golden file holds what is printed, in both languages.
//
// To rewrite the files after a change that is meant:  PHALANX_UPDATE_GOLDEN=1 build/dev/tests/view_test --gtest_filter='Choices.*'
// and read the difference before it is committed.
#include "view/choices.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

#include "situations.h"

namespace phalanx::view {
namespace {

using doctor::HostView;
using doctor::Situation;
using doctor::test::bond_infiniband;
using doctor::test::docker_host_network;
using doctor::test::plain_ethernet;
using doctor::test::single_machine;
using machine::Gpu;
using machine::Interface;

constexpr int64_t kGiB = int64_t{1} << 30;

Interface& add_interface(HostView& h, const char* name, const char* kind, const std::string& address, int64_t prefix, int64_t speed) {
  Interface i;
  i.name = name;
  i.kind = kind;
  i.up = i.running = i.carrier = true;
  i.speed_mbps = speed;
  i.addresses.emplace_back();
  i.addresses[0].address = address;
  i.addresses[0].prefix = prefix;
  h.facts.network.interfaces.push_back(i);
  return h.facts.network.interfaces.back();
}

void model(Gpu& g, const char* name, int64_t major, int64_t minor, int64_t sms, int64_t gib) {
  g.name = name;
  g.cc_major = major;
  g.cc_minor = minor;
  g.sm_count = sms;
  g.memory_bytes = gib * kGiB;
}

void keep(HostView& h, size_t gpus) {
  h.facts.gpus.devices.resize(gpus);
  std::erase_if(h.facts.gpus.pairs, [&](const machine::GpuPair& p) { return static_cast<size_t>(std::max(p.a, p.b)) >= gpus; });
}

void nccl_takes(HostView& h, const char* interface, const std::string& address) {
  h.facts.network.choices[0].interface = interface;
  h.facts.network.choices[0].address = address;
}

// UUIDs of the fixtures hang on the library's hash; names do as well here.
Situation gt1030() {
  Situation s = single_machine();
  std::vector<Gpu>& all = s.hosts[0].facts.gpus.devices;
  Gpu old = all[0];
  model(old, "NVIDIA GeForce GT 1030", 6, 1, 3, 2);
  all.insert(all.begin(), old);
  for (size_t i = 0; i < 3; ++i) all[i].index = static_cast<int64_t>(i);
  all[1].pci = "0000:3b:00.0";
  all[2].pci = "0000:af:00.0";
  s.hosts[0].facts.gpus.pairs = {{1, 2, "chipset not supported", "chipset not supported", "SYS"}};
  return s;
}

// The first field note: indices as nvidia-smi counts, read by CUDA in its own order.
Situation gt1030_by_hand() {
  Situation s = gt1030();
  s.job.set = {{"CUDA_VISIBLE_DEVICES", "1,2"}};
  return s;
}

Situation unequal_hosts() {
  Situation s = bond_infiniband();
  keep(s.hosts[1], 4);
  return s;
}

Situation a100_and_h100() {
  Situation s = bond_infiniband();
  for (Gpu& g : s.hosts[3].facts.gpus.devices) model(g, "NVIDIA H100 80GB HBM3", 9, 0, 132, 80);
  return s;
}

Situation one_busy() {
  Situation s = docker_host_network();
  machine::GpuProcess p;
  p.pid = 4711;
  p.name = "python";
  p.user = "wang";
  p.used_bytes = 20 * kGiB;
  s.hosts[0].facts.gpus.devices[2].processes = {p};
  s.hosts[0].facts.gpus.devices[2].memory_used_bytes = 20 * kGiB;
  return s;
}

// As one_busy(), but the first.
Situation one_busy_first() {
  Situation s = one_busy();
  std::vector<Gpu>& all = s.hosts[0].facts.gpus.devices;
  std::swap(all[0].processes, all[2].processes);
  std::swap(all[0].memory_used_bytes, all[2].memory_used_bytes);
  return s;
}

Situation gpus_by_hand() {
  Situation s = bond_infiniband();
  s.job.set = {{"CUDA_VISIBLE_DEVICES", "4,5,6"}};
  return s;
}

Situation mig() {
  Situation s = bond_infiniband();
  s.hosts[2].facts.gpus.devices[0].mig = true;
  s.hosts[2].facts.gpus.devices[0].mig_devices = {"MIG-1", "MIG-2"};
  return s;
}

Situation ib_init() {
  Situation s = bond_infiniband();
  for (machine::IbDevice& d : s.hosts[2].facts.infiniband.devices) d.ports[0].state = "INIT";
  for (Interface& i : s.hosts[2].facts.network.interfaces)
    if (i.kind == "infiniband") i.running = i.carrier = false;
  nccl_takes(s.hosts[2], "bond0", "10.1.0.13");  // from 2.28 what is not running is passed over
  return s;
}

Situation mixed_roce() {
  Situation s = bond_infiniband();
  for (HostView& h : s.hosts) {
    machine::IbDevice d = h.facts.infiniband.devices[0];
    d.name = "mlx5_bond_0";
    d.net_interfaces = {"bond0"};
    d.ports[0].link_layer = "Ethernet";
    d.ports[0].rate_gbps = 50;
    h.facts.infiniband.devices.push_back(d);
  }
  return s;
}

Situation decoys() {
  Situation s = docker_host_network();
  for (HostView& h : s.hosts) {
    Interface& virbr = add_interface(h, "virbr0", "bridge", "192.168.122.1", 24, 0);
    std::swap(h.facts.network.interfaces[1], virbr);
    for (machine::LibraryFile& f : h.facts.software.nccl) f.version = "2.20.5+cuda12.4";
    nccl_takes(h, "virbr0", "192.168.122.1");
  }
  return s;
}

Situation two_networks() {
  Situation s = docker_host_network();
  for (size_t h = 0; h < 2; ++h) {
    s.hosts[h].facts.network.interfaces[1].speed_mbps = 1000;
    add_interface(s.hosts[h], "enp65s0", "physical", "10.25.0." + std::to_string(2 + h), 24, 25'000);
  }
  return s;
}

Situation loopback_name() {
  Situation s = plain_ethernet();
  s.hosts[1].facts.network.choices[1].interface = "lo";
  s.hosts[1].facts.network.choices[1].address = "127.0.1.1";
  return s;
}

Situation slow_resolver() {
  Situation s = single_machine();
  s.hosts[0].facts.network.names[0].took_ns = 10'000'000'000;
  return s;
}

Situation rtx4090() {
  Situation s = single_machine();
  for (Gpu& g : s.hosts[0].facts.gpus.devices) model(g, "NVIDIA GeForce RTX 4090", 8, 9, 128, 24);
  s.hosts[0].facts.gpus.driver = "535.104.05";
  s.hosts[0].facts.gpus.pairs[0].p2p_read = s.hosts[0].facts.gpus.pairs[0].p2p_write = "ok";
  return s;
}

Situation harmful_settings() {
  Situation s = bond_infiniband();
  s.job.set = {{"NCCL_IB_DISABLE", "1"}, {"NCCL_P2P_DISABLE", "1"}, {"OMP_NUM_THREADS", "64"}, {"NCCL_SOCKET_IFNAME", "eth9"}};
  for (HostView& h : s.hosts) nccl_takes(h, "", "");
  return s;
}

struct Golden {
  const char* name;
  std::function<Situation()> make;
  job::GpuRequest wish = {};
};

std::string shown(const Golden& golden) {
  Situation s = golden.make();
  std::vector<job::Network> networks = job::shared_networks(s, golden.wish.interface);
  job::Choices choices = job::choose(s, golden.wish, networks.empty() ? job::Network{} : networks[0]);
  return choices_text(s, choices, base::Language::kEnglish) + "\n" + choices_text(s, choices, base::Language::kChinese);
}

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Choices, AreWhatAnExpertWouldChoose) {
  job::GpuRequest four, lists, too_many, one_rank, two_ranks;
  four.count = 4;
  lists.lists = {{"ainode02", {3, 1}}};
  too_many.count = 9;
  one_rank.ranks = {1, 1, 1, 1};
  two_ranks.ranks = {2, 2};
  const std::vector<Golden> all = {{"plain_ethernet", plain_ethernet},
                                   {"bond_infiniband", bond_infiniband},
                                   {"docker_host_network", docker_host_network},
                                   {"single_machine", single_machine},
                                   {"gt1030_beside_3090s", gt1030},
                                   {"gt1030_by_hand", gt1030_by_hand},
                                   {"eight_and_four_gpus", unequal_hosts},
                                   {"a100_and_h100", a100_and_h100},
                                   {"one_busy_gpu", one_busy},
                                   {"mig_on_one_host", mig},
                                   {"infiniband_init", ib_init},
                                   {"infiniband_and_roce", mixed_roce},
                                   {"decoy_interfaces", decoys},
                                   {"two_networks", two_networks},
                                   {"own_name_is_loopback", loopback_name},
                                   {"slow_resolver", slow_resolver},
                                   {"rtx4090_old_driver", rtx4090},
                                   {"harmful_settings", harmful_settings},
                                   {"four_gpus_each", bond_infiniband, four},
                                   {"gpus_by_list", docker_host_network, lists},
                                   {"one_rank_of_eight_gpus", bond_infiniband, one_rank},
                                   {"fewer_ranks_and_a_busy_gpu", one_busy_first, two_ranks},
                                   {"one_rank_and_a_list_by_hand", gpus_by_hand, one_rank},
                                   {"more_than_there_are", bond_infiniband, too_many}};
  for (const Golden& golden : all) {
    std::string path = std::string(PHALANX_TEST_DATA) + "/choices/" + golden.name + ".txt";
    std::string text = shown(golden);
    if (std::getenv("PHALANX_UPDATE_GOLDEN")) std::ofstream(path) << text;
    EXPECT_EQ(text, contents(path)) << golden.name;
  }
}

}  // namespace
}  // namespace phalanx::view
