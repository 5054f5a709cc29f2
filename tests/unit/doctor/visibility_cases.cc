#include "cases.h"

namespace phalanx::doctor::test {
namespace {

using machine::Gpu;

machine::GpuFacts& gpus(Situation& s, size_t h = 0) { return s.hosts[h].facts.gpus; }
void set(Situation& s, const char* name, const char* value, size_t h = 0) { s.hosts[h].facts.software.environment[name] = value; }

// The first field note: nvidia-smi shows RTX 3090, GT 1030, RTX 3090.
void display_card(Situation& s) {
  std::vector<Gpu>& d = gpus(s).devices;
  d.push_back(d[1]);
  Gpu& g = d[1];
  g.name = "NVIDIA GeForce GT 1030";
  g.uuid = "GPU-addf6be6-9a6e-c331-da9e-b0ab90813984";
  g.cc_major = 6, g.cc_minor = 1, g.sm_count = 3, g.memory_bytes = int64_t{2} << 30;
  d[2].index = 2;
  d[2].pci = "0000:30:00.0";
  gpus(s).pci_devices = gpus(s).device_nodes = 3;
  s.hosts[0].ranks = 2;
}

void other_arch(Situation& s, int64_t major, int64_t minor) {
  for (Gpu& g : gpus(s).devices) g.cc_major = major, g.cc_minor = minor;
}

std::vector<Case> arch_cases() {
  return {
      hit("VIS-MIXED-ARCH", "a display card among them", single_machine, display_card),
      hit("VIS-MIXED-ARCH", "0,2 counted from the fastest", single_machine,
          [](Situation& s) {
            display_card(s);
            set(s, "CUDA_VISIBLE_DEVICES", "0,2");
            set(s, "CUDA_DEVICE_ORDER", "FASTEST_FIRST");
          }),
      miss("VIS-MIXED-ARCH", "0,2 as nvidia-smi counts", single_machine,
           [](Situation& s) {
             display_card(s);
             set(s, "CUDA_VISIBLE_DEVICES", "0,2");
             set(s, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
           }),
      hit("VIS-ORDER", "0,2 without an order", single_machine,
          [](Situation& s) {
            display_card(s);
            set(s, "CUDA_VISIBLE_DEVICES", "0,2");
          }),
      miss("VIS-ORDER", "the order is said", single_machine,
           [](Situation& s) {
             display_card(s);
             set(s, "CUDA_VISIBLE_DEVICES", "0,2");
             set(s, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
           }),
      miss("VIS-ORDER", "equal cards", single_machine, [](Situation& s) { set(s, "CUDA_VISIBLE_DEVICES", "1,0"); }),
      hit("VIS-ORDER-VALUE", "a word of one's own", single_machine, [](Situation& s) { set(s, "CUDA_DEVICE_ORDER", "PCI_BUSID"); }),
      miss("VIS-ORDER-VALUE", "the default's name", single_machine, [](Situation& s) { set(s, "CUDA_DEVICE_ORDER", "FASTEST_FIRST"); }),
      hit("VIS-WHEEL-ARCH", "a new card, an old wheel without PTX", single_machine,
          [](Situation& s) {
            other_arch(s, 12, 0);
            s.hosts[0].facts.software.torch_archs.pop_back();
          }),
      hit("VIS-WHEEL-ARCH", "the display card chosen by name", single_machine,
          [](Situation& s) {
            display_card(s);
            gpus(s).devices[1].cc_major = 3, gpus(s).devices[1].cc_minor = 5;
            set(s, "CUDA_VISIBLE_DEVICES", "GPU-addf");
            s.hosts[0].ranks = 1;
          }),
      miss("VIS-WHEEL-ARCH", "sm_86 runs on 8.9", single_machine, [](Situation& s) { other_arch(s, 8, 9); }),
      miss("VIS-WHEEL-ARCH", "PTX is compiled for a newer card", single_machine, [](Situation& s) { other_arch(s, 12, 0); }),
      miss("VIS-WHEEL-ARCH", "an old display card that nobody chose", single_machine,
           [](Situation& s) {
             display_card(s);
             gpus(s).devices[1].cc_major = 3, gpus(s).devices[1].cc_minor = 5;
           }),
  };
}

std::vector<Case> count_cases() {
  return {
      hit("VIS-CVD-DIFFERS", "set on one host only", docker_host_network,
          [](Situation& s) {
            set(s, "CUDA_VISIBLE_DEVICES", "0,1", 1);
            s.hosts[1].ranks = 2;
          }),
      miss("VIS-CVD-DIFFERS", "set on one host, to all its cards", docker_host_network,
           [](Situation& s) { set(s, "CUDA_VISIBLE_DEVICES", "0,1,2,3", 1); }),
      miss("VIS-CVD-DIFFERS", "the user asked for two ranks a host", docker_host_network,
           [](Situation& s) {
             set(s, "CUDA_VISIBLE_DEVICES", "0,1", 1);
             s.hosts[0].ranks = s.hosts[1].ranks = 2;
           }),
      hit("VIS-COUNT-DIFFERS", "seven of eight", bond_infiniband, [](Situation& s) { gpus(s, 2).devices.pop_back(); }),
      miss("VIS-COUNT-DIFFERS", "a host without any", docker_host_network,
           [](Situation& s) {
             gpus(s, 1) = {};
             s.job.wants_gpus = false;
           }),
      hit("VIS-CVD-BAD", "0,9,1", docker_host_network, [](Situation& s) { set(s, "CUDA_VISIBLE_DEVICES", "0,9,1"); }),
      miss("VIS-CVD-BAD", "-1 ends a list on purpose", docker_host_network, [](Situation& s) { set(s, "CUDA_VISIBLE_DEVICES", "0,1,-1"); }),
      miss("VIS-CVD-BAD", "blanks around commas", docker_host_network, [](Situation& s) { set(s, "CUDA_VISIBLE_DEVICES", "0, 1, 2, 3"); }),
      hit("VIS-CVD-NONE", "empty", single_machine, [](Situation& s) { set(s, "CUDA_VISIBLE_DEVICES", ""); }),
      hit("VIS-CVD-NONE", "an entry twice", single_machine, [](Situation& s) { set(s, "CUDA_VISIBLE_DEVICES", "0,0"); }),
      miss("VIS-CVD-NONE", "hidden on purpose from a job on the CPU", single_machine,
           [](Situation& s) {
             set(s, "CUDA_VISIBLE_DEVICES", "");
             s.job.wants_gpus = false;
           }),
      hit("VIS-NPROC", "three ranks, two cards", single_machine, [](Situation& s) { s.hosts[0].ranks = 3; }),
      miss("VIS-NPROC", "as many as cards", single_machine, [](Situation& s) { s.hosts[0].ranks = 2; }),
      hit("VIS-DUP-GPU", "one machine under two names", docker_host_network, [](Situation& s) { gpus(s, 1).devices = gpus(s, 0).devices; }),
      miss("VIS-DUP-GPU", "containers with a card each of one machine", docker_host_network,
           [](Situation& s) {
             gpus(s, 1).devices = gpus(s, 0).devices;
             set(s, "CUDA_VISIBLE_DEVICES", "0,1", 0);
             set(s, "CUDA_VISIBLE_DEVICES", "2,3", 1);
             s.hosts[0].ranks = s.hosts[1].ranks = 2;
           }),
      hit("VIS-LOCAL-RANK", "fixed for all", single_machine, [](Situation& s) { s.job.set.emplace_back("LOCAL_RANK", "0"); }),
      miss("VIS-LOCAL-RANK", "one rank", single_machine,
           [](Situation& s) {
             s.job.set.emplace_back("LOCAL_RANK", "0");
             s.hosts[0].ranks = 1;
           }),
  };
}

}  // namespace

std::vector<Case> visibility_cases() {
  std::vector<Case> all = arch_cases();
  for (Case& c : count_cases()) all.push_back(std::move(c));
  return all;
}

}  // namespace phalanx::doctor::test
