#include "cases.h"

namespace phalanx::doctor::test {
namespace {

using machine::Gpu;

machine::GpuFacts& gpus(Situation& s, size_t h = 0) { return s.hosts[h].facts.gpus; }
Gpu& gpu(Situation& s, size_t g = 1, size_t h = 0) { return gpus(s, h).devices[g]; }
void bridge(Gpu& g, const char* address, int64_t width, int64_t max_width, const char* speed = "16.0 GT/s PCIe") {
  g.pcie.push_back({address, speed, "16.0 GT/s PCIe", width, max_width, false});
}
// Two A10s below one switch, P2P between them.
void below_a_switch(Situation& s) {
  for (Gpu& g : gpus(s).devices) bridge(g, "0000:0a:00.0", 16, 16);
  gpus(s).pairs[0].path = "PIX";
}

}  // namespace

std::vector<Case> speed_gpu_cases() {
  return {
      hit("PERF-PCIE-WIDTH", "x8 of x16", single_machine, [](Situation& s) { gpu(s).pcie[0].width = 8; }),
      hit("PERF-PCIE-WIDTH", "a bridge above two cards", docker_host_network, [](Situation& s) { bridge(gpu(s), "0000:0a:00.0", 4, 16); }),
      miss("PERF-PCIE-WIDTH", "x8 in a slot wired x8", single_machine,
           [](Situation& s) {
             gpu(s).pcie[0].width = 8;
             bridge(gpu(s), "0000:00:01.0", 8, 8);
           }),
      hit("PERF-PCIE-SPEED", "a switch's way up at generation 1", bond_infiniband,
          [](Situation& s) {
            bridge(gpu(s), "0000:0a:00.0", 16, 16);
            bridge(gpu(s), "0000:09:00.0", 16, 16, "2.5 GT/s PCIe");
            bridge(gpu(s), "0000:00:01.0", 16, 16, "2.5 GT/s PCIe");
          }),
      miss("PERF-PCIE-SPEED", "an idle card's own link", bond_infiniband,
           [](Situation& s) {
             gpu(s).pcie[0].speed = "2.5 GT/s PCIe";
             bridge(gpu(s), "0000:0a:00.0", 16, 16, "2.5 GT/s PCIe");
           }),
      hit("PERF-PCIE-REPLAYS", "many", single_machine, [](Situation& s) { gpu(s).pcie_replays = 40'000; }),
      miss("PERF-PCIE-REPLAYS", "a few", single_machine, [](Situation& s) { gpu(s).pcie_replays = 3; }),
      hit("PERF-POWER-LIMIT", "250 W of 350 W", single_machine, [](Situation& s) { gpu(s).power_limit_mw = 250'000; }),
      miss("PERF-POWER-LIMIT", "alike on all", single_machine,
           [](Situation& s) {
             for (Gpu& g : gpus(s).devices) g.power_limit_mw = 250'000;
           }),
      hit("PERF-POWER-LOW", "alike on all", single_machine,
          [](Situation& s) {
            for (Gpu& g : gpus(s).devices) g.power_limit_mw = 250'000;
          }),
      miss("PERF-POWER-LOW", "a little", single_machine,
           [](Situation& s) {
             for (Gpu& g : gpus(s).devices) g.power_limit_mw = 340'000;
           }),
      hit("PERF-CLOCKS", "fixed low", bond_infiniband,
          [](Situation& s) {
            gpu(s).clock_application_mhz = 1005;
            gpu(s).clock_application_default_mhz = 1410;
          }),
      miss("PERF-CLOCKS", "the default", bond_infiniband,
           [](Situation& s) { gpu(s).clock_application_mhz = gpu(s).clock_application_default_mhz = 1095; }),
      hit("PERF-POWER-BRAKE", "on one card", bond_infiniband, [](Situation& s) { gpu(s).throttle_reasons = 0x88; }),
      miss("PERF-POWER-BRAKE", "idle", bond_infiniband, [](Situation& s) { gpu(s).throttle_reasons = 0x1; }),
      hit("PERF-HEAT", "slowed down", bond_infiniband, [](Situation& s) { gpu(s).throttle_reasons = 0x48, gpu(s).temperature_c = 89; }),
      hit("PERF-HEAT", "hot with nothing to do", bond_infiniband, [](Situation& s) { gpu(s).temperature_c = 81; }),
      miss("PERF-HEAT", "warm at work", bond_infiniband,
           [](Situation& s) {
             gpu(s).temperature_c = 81;
             gpu(s).utilization_percent = 100;
           }),
      hit("PERF-ACS", "on in the switch", docker_host_network,
          [](Situation& s) {
            below_a_switch(s);
            for (Gpu& g : gpus(s).devices) g.pcie[1].acs_redirects = true;
          }),
      miss("PERF-ACS", "on at root ports, with nothing below to be turned away", docker_host_network,
           [](Situation& s) {
             for (Gpu& g : gpus(s).devices) {
               bridge(g, "0000:00:01.0", 16, 16);
               g.pcie[1].acs_redirects = true;
             }
           }),
      hit("PERF-IOMMU", "translates between cards with P2P", docker_host_network, [](Situation& s) { gpus(s).iommu_translates = true; }),
      miss("PERF-IOMMU", "cards without P2P", single_machine, [](Situation& s) { gpus(s).iommu_translates = true; }),
  };
}

}  // namespace phalanx::doctor::test
