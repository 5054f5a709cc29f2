// Each IB- row: four machines with InfiniBand and one realistic fault, and the nearest state that is still well.
#include "cases.h"

namespace phalanx::doctor::test {
namespace {

machine::IbPort& port(Situation& s, size_t h, size_t device) { return s.hosts[h].facts.infiniband.devices[device].ports[0]; }

void set(Situation& s, const std::string& name, const std::string& value) { s.job.set.emplace_back(name, value); }

template <typename Change>
void each(Situation& s, Change change) {
  for (size_t h = 0; h < s.hosts.size(); ++h)
    for (size_t d = 0; d < s.hosts[h].facts.infiniband.devices.size(); ++d) change(h, d, port(s, h, d));
}

// The same machines with RoCE: GIDs as a ConnectX shows them with one IPv4 address.
Situation roce() {
  Situation s = bond_infiniband();
  each(s, [&](size_t h, size_t d, machine::IbPort& p) {
    std::string name = "ens" + std::to_string(d);
    std::string link_local = "fe80:0000:0000:0000:b859:9fff:fe03:041" + std::to_string(h);
    std::string ipv4 = "0000:0000:0000:0000:0000:ffff:0a02:000" + std::to_string(h);
    p.link_layer = "Ethernet";
    p.lid = p.sm_lid = 0;
    p.rate = "100 Gb/sec (4X EDR)";
    p.rate_gbps = 100;
    p.gids = {
        {0, link_local, "IB/RoCE v1", name}, {1, link_local, "RoCE v2", name}, {2, ipv4, "IB/RoCE v1", name}, {3, ipv4, "RoCE v2", name}};
    if (d == 0) s.hosts[h].facts.software.nccl = {{"/x/libnccl.so.2", "2.21.5+cuda12.4"}};
  });
  return s;
}

// An Ethernet management port of the same make beside the fabric.
void add_management_port(Situation& s, const std::string& state) {
  for (HostView& h : s.hosts) {
    machine::IbDevice d = h.facts.infiniband.devices[0];
    d.name = "mlx5_bond_0";
    d.pci = "0000:e1:00.0";
    d.ports[0].link_layer = "Ethernet";
    d.ports[0].state = state;
    d.ports[0].sm_lid = 0;
    d.ports[0].rate = "25 Gb/sec (1X EDR)";
    d.ports[0].rate_gbps = 25;
    h.facts.infiniband.devices.push_back(d);
  }
}

void add_port_cases(std::vector<Case>& all) {
  all.push_back(hit("IB-PORT-INIT", "no subnet manager on all hosts", bond_infiniband,
                    [](Situation& s) { each(s, [](size_t, size_t, machine::IbPort& p) { p.state = "INIT", p.sm_lid = 0; }); }));
  all.push_back(miss("IB-PORT-INIT", "a port without a cable", bond_infiniband, [](Situation& s) {
    port(s, 0, 3).state = "DOWN";
    port(s, 0, 3).phys_state = "Polling";
  }));
  all.push_back(hit("IB-PORT-DOWN", "a cable is out on one host", bond_infiniband, [](Situation& s) {
    port(s, 0, 3).state = "DOWN";
    port(s, 0, 3).phys_state = "Polling";
  }));
  all.push_back(miss("IB-PORT-DOWN", "a port that nobody uses", bond_infiniband, [](Situation& s) {
    each(s, [](size_t, size_t d, machine::IbPort& p) {
      if (d == 3) p.state = "DOWN", p.phys_state = "Polling";
    });
  }));
  all.push_back(hit("IB-NONE-ACTIVE", "cards without cables on all hosts", bond_infiniband, [](Situation& s) {
    each(s, [](size_t, size_t, machine::IbPort& p) { p.state = "DOWN", p.phys_state = "Polling", p.sm_lid = 0; });
  }));
  all.push_back(miss("IB-NONE-ACTIVE", "one port of four works", bond_infiniband, [](Situation& s) {
    each(s, [](size_t, size_t d, machine::IbPort& p) {
      if (d != 1) p.state = "DOWN", p.phys_state = "Polling", p.sm_lid = 0;
    });
  }));
  all.push_back(hit("IB-NO-SM", "sm_lid 0 with the link up", bond_infiniband, [](Situation& s) { port(s, 1, 0).sm_lid = 0; }));
  all.push_back(miss("IB-NO-SM", "RoCE has no subnet manager", roce, [](Situation&) {}));
  all.push_back(
      hit("IB-MIXED-LINK", "the management port is an HCA too", bond_infiniband, [](Situation& s) { add_management_port(s, "ACTIVE"); }));
  all.push_back(miss("IB-MIXED-LINK", "and is left out", bond_infiniband, [](Situation& s) {
    add_management_port(s, "ACTIVE");
    set(s, "NCCL_IB_HCA", "^=mlx5_bond_0");
  }));
  all.push_back(miss("IB-MIXED-LINK", "and is down", bond_infiniband, [](Situation& s) { add_management_port(s, "DOWN"); }));
  all.push_back(hit("IB-RATE", "EDR among HDR", bond_infiniband, [](Situation& s) {
    port(s, 2, 1).rate = "100 Gb/sec (4X EDR)";
    port(s, 2, 1).rate_gbps = 100;
  }));
  all.push_back(miss("IB-RATE", "EDR on all hosts", bond_infiniband, [](Situation& s) {
    each(s, [](size_t, size_t d, machine::IbPort& p) {
      if (d == 1) p.rate = "100 Gb/sec (4X EDR)", p.rate_gbps = 100;
    });
  }));
  all.push_back(hit("IB-WIDTH", "one lane", bond_infiniband, [](Situation& s) { port(s, 2, 1).rate = "50 Gb/sec (1X HDR)"; }));
  all.push_back(miss("IB-WIDTH", "HDR100 is two lanes by design", bond_infiniband, [](Situation& s) {
    each(s, [](size_t, size_t, machine::IbPort& p) { p.rate = "100 Gb/sec (2X HDR)", p.rate_gbps = 100; });
  }));
  all.push_back(
      hit("IB-ERRORS", "symbol errors on one port", bond_infiniband, [](Situation& s) { port(s, 3, 0).counters["symbol_error"] = 5000; }));
  all.push_back(miss("IB-ERRORS", "a few", bond_infiniband, [](Situation& s) { port(s, 3, 0).counters["symbol_error"] = 30; }));
  all.push_back(miss("IB-ERRORS", "on all ports, since a year", bond_infiniband, [](Situation& s) {
    each(s, [](size_t h, size_t, machine::IbPort& p) { p.counters["symbol_error"] = 500 + 100 * static_cast<int64_t>(h); });
  }));
  all.push_back(hit("IB-FIRMWARE", "one older", bond_infiniband,
                    [](Situation& s) { s.hosts[1].facts.infiniband.devices[0].firmware = "20.31.1014"; }));
  all.push_back(miss("IB-FIRMWARE", "another board", bond_infiniband, [](Situation& s) {
    s.hosts[1].facts.infiniband.devices[0].firmware = "28.39.1002";
    s.hosts[1].facts.infiniband.devices[0].board = "MT_0000000838";
  }));
  all.push_back(hit("IB-PKEY", "another partition", bond_infiniband, [](Situation& s) { port(s, 1, 0).pkey = "0x8005"; }));
  all.push_back(hit("IB-PKEY", "limited members", bond_infiniband,
                    [](Situation& s) { each(s, [](size_t, size_t, machine::IbPort& p) { p.pkey = "0x7fff"; }); }));
  all.push_back(miss("IB-PKEY", "another partition, all of them", bond_infiniband,
                     [](Situation& s) { each(s, [](size_t, size_t, machine::IbPort& p) { p.pkey = "0x8005"; }); }));
  all.push_back(
      hit("IB-DEVICE-MISSING", "three of four", bond_infiniband, [](Situation& s) { s.hosts[1].facts.infiniband.devices.pop_back(); }));
  all.push_back(miss("IB-DEVICE-MISSING", "three on all", bond_infiniband, [](Situation& s) {
    for (HostView& h : s.hosts) h.facts.infiniband.devices.pop_back();
  }));
}

void add_use_cases(std::vector<Case>& all) {
  all.push_back(hit("IB-NO-VERBS", "an image without rdma-core", bond_infiniband,
                    [](Situation& s) { s.hosts[1].facts.infiniband.libibverbs.clear(); }));
  all.push_back(hit("IB-NO-VERBS", "a container without the devices", bond_infiniband,
                    [](Situation& s) { s.hosts[1].facts.infiniband.uverbs = false; }));
  all.push_back(miss("IB-NO-VERBS", "sockets are asked for", bond_infiniband, [](Situation& s) {
    s.hosts[1].facts.infiniband.libibverbs.clear();
    set(s, "NCCL_IB_DISABLE", "1");
  }));
  all.push_back(hit("IB-DISABLED-LEFT", "NCCL_IB_DISABLE=1", bond_infiniband, [](Situation& s) { set(s, "NCCL_IB_DISABLE", "1"); }));
  all.push_back(hit("IB-DISABLED-LEFT", "NCCL_NET=Socket in the host's environment", bond_infiniband,
                    [](Situation& s) { s.hosts[0].facts.software.environment["NCCL_NET"] = "Socket"; }));
  all.push_back(miss("IB-DISABLED-LEFT", "no InfiniBand there", docker_host_network, [](Situation& s) { set(s, "NCCL_IB_DISABLE", "1"); }));
  all.push_back(miss("IB-DISABLED-LEFT", "NCCL_IB_DISABLE=0", bond_infiniband, [](Situation& s) { set(s, "NCCL_IB_DISABLE", "0"); }));
  all.push_back(hit("IB-SOME-HOSTS", "one host without an active port", bond_infiniband, [](Situation& s) {
    for (size_t d = 0; d < 4; ++d) port(s, 2, d).state = "DOWN";
  }));
  all.push_back(miss("IB-SOME-HOSTS", "one host without, and sockets for all", bond_infiniband, [](Situation& s) {
    for (size_t d = 0; d < 4; ++d) port(s, 2, d).state = "DOWN";
    set(s, "NCCL_IB_DISABLE", "1");
  }));
  all.push_back(hit("IB-HCA-FILTER", "another make's name", bond_infiniband, [](Situation& s) { set(s, "NCCL_IB_HCA", "bnxt_re0"); }));
  all.push_back(miss("IB-HCA-FILTER", "a port by number", bond_infiniband, [](Situation& s) { set(s, "NCCL_IB_HCA", "=mlx5_1:1"); }));
  auto many = [](Situation& s) {
    for (HostView& h : s.hosts) h.facts.infiniband.devices[3].name = "mlx5_10";
  };
  all.push_back(hit("IB-HCA-PREFIX", "mlx5_1 takes mlx5_10", bond_infiniband, [many](Situation& s) {
    many(s);
    set(s, "NCCL_IB_HCA", "mlx5_1");
  }));
  all.push_back(miss("IB-HCA-PREFIX", "with =", bond_infiniband, [many](Situation& s) {
    many(s);
    set(s, "NCCL_IB_HCA", "=mlx5_1");
  }));
  all.push_back(miss("IB-HCA-PREFIX", "mlx5 means all of them", bond_infiniband, [](Situation& s) { set(s, "NCCL_IB_HCA", "mlx5"); }));
  auto swapped = [](Situation& s) { std::swap(s.hosts[1].facts.infiniband.devices[0].pci, s.hosts[1].facts.infiniband.devices[1].pci); };
  all.push_back(hit("IB-HCA-NAMES", "two cards in another order", bond_infiniband, [swapped](Situation& s) {
    swapped(s);
    set(s, "NCCL_IB_HCA", "mlx5_0,mlx5_1");
  }));
  all.push_back(miss("IB-HCA-NAMES", "and no names are used", bond_infiniband, swapped));
}

void add_need_cases(std::vector<Case>& all) {
  all.push_back(hit("IB-GID-INDEX", "an empty place", roce, [](Situation& s) { set(s, "NCCL_IB_GID_INDEX", "5"); }));
  all.push_back(hit("IB-GID-INDEX", "v1", roce, [](Situation& s) { set(s, "NCCL_IB_GID_INDEX", "2"); }));
  all.push_back(hit("IB-GID-INDEX", "the table is another on one host", roce, [](Situation& s) {
    port(s, 2, 0).gids.erase(port(s, 2, 0).gids.begin() + 2, port(s, 2, 0).gids.end());
    set(s, "NCCL_IB_GID_INDEX", "3");
  }));
  all.push_back(miss("IB-GID-INDEX", "v2 over IPv4", roce, [](Situation& s) { set(s, "NCCL_IB_GID_INDEX", "3"); }));
  all.push_back(miss("IB-GID-INDEX", "not set", roce, [](Situation&) {}));
  all.push_back(hit("IB-GID-DEFAULT", "NCCL 2.20 on RoCE", roce, [](Situation& s) {
    for (HostView& h : s.hosts) h.facts.software.nccl[0].version = "2.20.5+cuda12.4";
  }));
  all.push_back(miss("IB-GID-DEFAULT", "NCCL 2.21 on RoCE", roce, [](Situation&) {}));
  all.push_back(miss("IB-GID-DEFAULT", "NCCL 2.20 on InfiniBand", bond_infiniband, [](Situation&) {}));
  all.push_back(
      hit("IB-PEERMEM", "not loaded on one host", bond_infiniband, [](Situation& s) { s.hosts[3].facts.infiniband.peermem = false; }));
  all.push_back(miss("IB-PEERMEM", "the open module has DMA-BUF", bond_infiniband, [](Situation& s) {
    s.hosts[3].facts.infiniband.peermem = false;
    s.hosts[3].facts.gpus.open_module = true;
  }));
}

}  // namespace

std::vector<Case> infiniband_cases() {
  std::vector<Case> all;
  add_port_cases(all);
  add_use_cases(all);
  add_need_cases(all);
  return all;
}

}  // namespace phalanx::doctor::test
