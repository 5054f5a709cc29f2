#include <fmt/format.h>

#include "situations.h"

namespace phalanx::doctor::test {
namespace {

using namespace phalanx::machine;

constexpr int64_t kGiB = int64_t{1} << 30;

Interface interface(std::string name, std::string kind, std::string address, int64_t prefix, int64_t speed_mbps, int64_t mtu = 1500) {
  Interface i;
  i.name = std::move(name);
  i.kind = std::move(kind);
  i.state = "up";
  i.up = i.running = i.carrier = true;
  i.carrier_changes = 2;
  i.mtu = mtu;
  i.speed_mbps = speed_mbps;
  if (!address.empty()) i.addresses.push_back({std::move(address), prefix, false, ""});
  return i;
}

Interface loopback() {
  Interface i = interface("lo", "loopback", "127.0.0.1", 8, 0, 65536);
  i.loopback = true;
  i.state = "unknown";
  return i;
}

void fill(SoftwareFacts& s) {
  s.program = s.interpreter = "/opt/conda/envs/llm/bin/python3.11";
  s.prefix = "/opt/conda/envs/llm";
  s.environment_kind = "conda";
  s.python = "3.11.9";
  s.site_packages = {"/opt/conda/envs/llm/lib/python3.11/site-packages"};
  s.packages = {{"torch", "2.4.0"}, {"transformers", "4.44.2"}, {"accelerate", "0.33.0"}, {"numpy", "1.26.4"}};
  s.fingerprint = "f1a9";
  s.torch_cuda = "12.1";
  s.torch_archs = {"sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "compute_90"};
  s.nccl = {{"/opt/conda/envs/llm/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2", "2.20.5+cuda12.4"}};
  s.environment = {{"PATH", "/opt/conda/envs/llm/bin:/usr/bin:/bin"}};
}

void fill(StorageFacts& st) {
  st.shm_present = true;
  st.shm_total_bytes = st.shm_free_bytes = 256 * kGiB;
  PathFact work;
  work.path = "/home/train/work";
  work.role = "workdir";
  work.named_by = "the working directory";
  work.exists = true;
  work.kind = "folder";
  work.entries = 12;
  work.token = "w0";
  work.mount_point = "/home";
  work.fs_type = "nfs4";
  work.source = "nas:/home";
  work.total_bytes = 4096 * kGiB;
  work.free_bytes = 2048 * kGiB;
  work.inodes = 100'000'000;
  work.free_inodes = 90'000'000;
  work.stat_ns = 200'000;
  st.paths = {work};
  st.network_mounts = {{"/home", "nfs4", "nas", "/home", true}};
}

void fill(LimitsFacts& l) {
  l.nofile = 1'048'576;
  l.nofile_hard = 1'048'576;
  l.nproc = l.nproc_hard = -1;
  l.nproc_used = 400;
  l.memlock = l.memlock_hard = -1;
  l.stack = 8 << 20;
  l.core = 0;
  l.address_space = l.file_size = -1;
  l.pids_max = -1;
  l.pids_used = 400;
  l.cgroup_memory_bytes = -1;
  l.cpuset = "0-63";
  l.threads_max = 4'000'000;
  l.pid_max = 4'194'304;
  l.max_map_count = 262'144;
  l.overcommit = 0;
  l.ptrace_scope = 0;
  l.governor = "performance";
  l.load_1min = 0.5;
}

HostView machine(const std::string& name, const std::string& address, std::string interface_name) {
  HostView h;
  h.name = name;
  h.probed = true;
  h.address = address;
  h.interface = std::move(interface_name);
  h.clock_offset_ns = 200'000;
  h.clock_error_ns = 100'000;
  Machine& m = h.facts.machine;
  m.hostname = name;
  m.boot_id = "b0070000-0000-4000-8000-" + fmt::format("{:0>12}", name);
  m.machine_id = fmt::format("{:0>32}", name);
  m.kernel = "6.1.0-18-amd64";
  m.distribution = "Debian GNU/Linux 12 (bookworm)";
  m.glibc = "2.36";
  m.architecture = "x86_64";
  m.user = "train";
  m.uid = 1000;
  m.cpus_online = m.cpus_usable = 64;
  m.numa_cpus = {"0-31", "32-63"};
  m.memory_bytes = 512 * kGiB;
  m.memory_available_bytes = 480 * kGiB;
  NetworkFacts& n = h.facts.network;
  n.names = {{name, {address}, "", 300'000}};
  n.port_range_low = 32768;
  n.port_range_high = 60999;
  n.somaxconn = 4096;
  n.tcp_syn_retries = 6;
  n.rp_filter = 0;
  fill(h.facts.software);
  fill(h.facts.storage);
  fill(h.facts.limits);
  ClockFacts& c = h.facts.clock;
  c.synchronized = true;
  c.daemon = "chronyd";
  c.time_zone = "UTC";
  return h;
}

// Names, routes and the mesh between hosts that all reach each other.
void join(Situation& s, int64_t bytes_per_second, int64_t round_trip_ns) {
  s.mesh.complete = true;
  for (size_t a = 0; a < s.hosts.size(); ++a) {
    for (size_t b = 0; b < s.hosts.size(); ++b) {
      if (a == b) continue;
      HostView& from = s.hosts[a];
      const HostView& to = s.hosts[b];
      from.facts.network.names.push_back({to.name, {to.address}, "", 300'000});
      from.facts.network.routes.push_back({to.address, from.interface, from.address, "", 1500, ""});
      hosts::Link link;
      link.from = static_cast<int64_t>(a);
      link.to = static_cast<int64_t>(b);
      link.address = to.address;
      link.port = 41000;
      link.outcome = wire::LinkOutcome::kOk;
      link.connect_ns = round_trip_ns;
      link.round_trip_ns = round_trip_ns;
      link.bytes_per_second = bytes_per_second;
      link.local_address = from.address;
      s.mesh.links.push_back(link);
    }
  }
  for (HostView& h : s.hosts) {
    h.facts.network.choices = {{"nccl", h.interface, h.address, "first that is not docker or lo"},
                               {"gloo", h.interface, h.address, "own name"},
                               {"c10d", h.interface, h.address, "own name"}};
  }
}

Gpu gpu(int index, std::string name, int major, int minor, int sms, int64_t memory, int64_t watts) {
  Gpu g;
  g.index = index;
  g.name = std::move(name);
  g.uuid = fmt::format("GPU-{:08x}-0000-4000-8000-000000000000", 0x1000 + index);
  g.pci = fmt::format("0000:{:02x}:00.0", 0x10 + 0x10 * index);
  g.cc_major = major;
  g.cc_minor = minor;
  g.sm_count = sms;
  g.memory_bytes = memory;
  g.memory_used_bytes = 4 << 20;
  g.numa_node = index < 4 ? 0 : 1;
  g.local_cpus = index < 4 ? "0-31" : "32-63";
  g.persistence = true;
  g.compute_mode = "default";
  g.temperature_c = 35;
  g.power_mw = 60'000;
  g.power_limit_mw = g.power_limit_default_mw = watts * 1000;
  g.clock_sm_mhz = 210;
  g.clock_sm_max_mhz = 1410;
  g.throttle_reasons = 1;  // idle
  g.utilization_percent = 0;
  g.pcie_replays = 0;
  g.pcie = {{g.pci, "16.0 GT/s PCIe", "16.0 GT/s PCIe", 16, 16, false}};
  return g;
}

void give_gpus(HostView& h, const std::vector<Gpu>& devices, const std::string& p2p, const std::string& path) {
  GpuFacts& g = h.facts.gpus;
  g.source = "nvml";
  g.driver = g.kernel_module = "550.54.15";
  g.cuda_driver = 12040;
  g.pci_devices = g.device_nodes = static_cast<int64_t>(devices.size());
  g.uvm_node = true;
  g.modules = {"nvidia", "nvidia_uvm", "nvidia_modeset"};
  g.devices = devices;
  for (Gpu& d : g.devices) d.uuid.replace(13, 4, fmt::format("{:04x}", std::hash<std::string>()(h.name) & 0xffff));
  for (size_t a = 0; a < devices.size(); ++a)
    for (size_t b = a + 1; b < devices.size(); ++b) g.pairs.push_back({static_cast<int64_t>(a), static_cast<int64_t>(b), p2p, p2p, path});
  h.ranks = static_cast<int>(devices.size());
}

void count_world(Situation& s) {
  s.job.world = 0;
  for (const HostView& h : s.hosts) s.job.world += h.ranks;
  s.job.argv = {"python", "train.py"};
  s.job.directory = "/home/train/work";
}

}  // namespace

Situation plain_ethernet() {
  Situation s;
  for (int i = 1; i <= 4; ++i) {
    std::string address = fmt::format("192.168.20.{}", 10 + i);
    HostView h = machine(fmt::format("node{:02}", i), address, "eno1");
    h.facts.network.interfaces = {loopback(), interface("eno1", "physical", address, 24, 10'000)};
    h.facts.software.torch_cuda = "cpu";
    h.facts.software.torch_archs.clear();
    h.facts.software.nccl.clear();
    h.ranks = 2;
    s.hosts.push_back(std::move(h));
  }
  join(s, 1'100'000'000, 120'000);
  count_world(s);
  return s;
}

Situation bond_infiniband() {
  Situation s;
  for (int i = 1; i <= 4; ++i) {
    std::string address = fmt::format("10.1.0.{}", 10 + i);
    HostView h = machine(fmt::format("dgx{:02}", i), address, "bond0");
    Interface bond = interface("bond0", "bond", address, 16, 50'000, 9000);
    bond.slaves = {{"enp225s0f0", true, 25'000}, {"enp225s0f1", true, 25'000}};
    h.facts.network.interfaces = {loopback(), bond};
    for (int p = 0; p < 4; ++p) {
      Interface ib = interface(fmt::format("ib{}", p), "infiniband", fmt::format("10.2.{}.{}", p, 10 + i), 24, 200'000, 4092);
      h.facts.network.interfaces.push_back(ib);
      IbDevice d;
      d.name = fmt::format("mlx5_{}", p);
      d.pci = fmt::format("0000:{:02x}:00.1", 0x10 + 0x20 * p);
      d.firmware = "20.35.1012";
      d.board = "MT_0000000223";
      d.numa_node = p / 2;
      d.net_interfaces = {ib.name};
      IbPort port;
      port.port = 1;
      port.state = "ACTIVE";
      port.phys_state = "LinkUp";
      port.link_layer = "InfiniBand";
      port.rate_gbps = 200;
      port.rate = "200 Gb/sec (4X HDR)";
      port.lid = 100 * i + p;
      port.sm_lid = 1;
      port.pkey = "0xffff";
      port.gids = {{0, fmt::format("fe80:0000:0000:0000:b859:9f03:00{:02x}:{:02x}10", p, i), "IB/RoCE v1", ib.name}};
      port.counters = {{"symbol_error", 0}, {"link_downed", 0}, {"port_rcv_errors", 0}, {"local_ack_timeout_err", 0}};
      d.ports = {port};
      h.facts.infiniband.devices.push_back(d);
    }
    h.facts.infiniband.uverbs = h.facts.infiniband.peermem = true;
    h.facts.infiniband.libibverbs = "/usr/lib/x86_64-linux-gnu/libibverbs.so.1";
    h.facts.infiniband.modules = {"mlx5_core", "mlx5_ib", "ib_uverbs"};
    std::vector<Gpu> devices;
    for (int g = 0; g < 8; ++g) {
      Gpu d = gpu(g, "NVIDIA A100-SXM4-80GB", 8, 0, 108, 80 * kGiB, 400);
      d.ecc = true;
      d.ecc_volatile_uncorrected = d.ecc_aggregate_uncorrected = d.remapped_correctable = d.remapped_uncorrectable = 0;
      for (int link = 0; link < 12; ++link) d.nvlinks.push_back({link, true, 0, "", true});
      devices.push_back(d);
    }
    give_gpus(h, devices, "ok", "NV12");
    h.facts.gpus.nvswitch = true;
    h.facts.gpus.fabric_manager = "active";
    h.facts.gpus.modules.push_back("nvidia_peermem");
    s.hosts.push_back(std::move(h));
  }
  join(s, 4'000'000'000, 60'000);
  for (HostView& h : s.hosts) h.facts.network.choices[0] = {"nccl", "ib0", h.facts.network.interfaces[2].addresses[0].address, "first ib*"};
  count_world(s);
  s.job.wants_gpus = true;
  return s;
}

Situation docker_host_network() {
  Situation s;
  for (int i = 1; i <= 2; ++i) {
    std::string address = fmt::format("172.16.12.{}", i == 1 ? 2 : 8);
    HostView h = machine(i == 1 ? "ainode02" : "ainode08", address, "bond0");
    h.facts.machine.container = "docker";
    h.facts.machine.user = "root";
    h.facts.machine.uid = 0;
    Interface bond = interface("bond0", "bond", address, 24, 20'000);
    bond.slaves = {{"eth0", true, 10'000}, {"eth1", true, 10'000}};
    Interface docker = interface("docker0", "docker", "172.17.0.1", 16, 0);
    docker.state = "down";
    docker.running = docker.carrier = false;
    h.facts.network.interfaces = {loopback(), bond, docker};
    std::vector<Gpu> devices;
    for (int g = 0; g < 4; ++g) {
      Gpu d = gpu(g, "NVIDIA A10", 8, 6, 72, 24 * kGiB, 150);
      d.ecc = true;
      d.ecc_volatile_uncorrected = d.ecc_aggregate_uncorrected = 0;
      devices.push_back(d);
    }
    give_gpus(h, devices, "ok", "PHB");
    h.facts.storage.shm_total_bytes = h.facts.storage.shm_free_bytes = 100 * kGiB;
    s.hosts.push_back(std::move(h));
  }
  join(s, 2'200'000'000, 80'000);
  count_world(s);
  s.job.wants_gpus = true;
  return s;
}

Situation single_machine() {
  Situation s;
  HostView h = machine("workstation", "192.168.1.7", "lo");
  h.facts.network.interfaces = {loopback(), interface("enp5s0", "physical", "192.168.1.7", 24, 1000)};
  h.facts.storage.network_mounts.clear();
  h.facts.storage.paths[0].fs_type = "ext4";
  h.facts.storage.paths[0].source = "/dev/nvme0n1p2";
  h.address = "127.0.0.1";
  std::vector<Gpu> devices = {gpu(0, "NVIDIA GeForce RTX 3090", 8, 6, 82, 24 * kGiB, 350),
                              gpu(1, "NVIDIA GeForce RTX 3090", 8, 6, 82, 24 * kGiB, 350)};
  give_gpus(h, devices, "chipset not supported", "PHB");
  s.hosts.push_back(std::move(h));
  join(s, 0, 0);
  count_world(s);
  s.job.wants_gpus = true;
  return s;
}

}  // namespace phalanx::doctor::test
