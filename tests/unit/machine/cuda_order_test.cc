#include "machine/gpu/cuda_order.h"

#include <gtest/gtest.h>

namespace phalanx::machine {
namespace {

using Why = Selection::Why;
using List = std::vector<int64_t>;

Gpu card(int64_t index, std::string name, std::string uuid, int64_t major, int64_t minor, int64_t sms, int64_t mhz, int64_t gib) {
  Gpu g;
  g.index = index;
  g.name = std::move(name);
  g.uuid = std::move(uuid);
  g.pci = "0000:0" + std::to_string(index + 1) + ":00.0";
  g.cc_major = major;
  g.cc_minor = minor;
  g.sm_count = sms;
  g.clock_sm_max_mhz = mhz;
  g.memory_bytes = gib << 30;
  return g;
}

// The first field note: nvidia-smi -L shows RTX 3090, GT 1030, RTX 3090.
GpuFacts field_note() {
  GpuFacts f;
  f.devices = {card(0, "NVIDIA GeForce RTX 3090", "GPU-ac50e9bd-5330-6ce2-2d4b-8f95df663b60", 8, 6, 82, 2100, 24),
               card(1, "NVIDIA GeForce GT 1030", "GPU-addf6be6-9a6e-c331-da9e-b0ab90813984", 6, 1, 3, 1911, 2),
               card(2, "NVIDIA GeForce RTX 3090", "GPU-ff67d0d7-648f-d302-c50e-49297407cd04", 8, 6, 82, 2100, 24)};
  return f;
}

TEST(CudaOrder, OfTheFirstFieldNote) {
  GpuFacts f = field_note();
  EXPECT_EQ(enumerate_gpus(f, CudaOrder::kPciBusId).devices, (List{0, 1, 2}));
  CudaEnumeration fastest = enumerate_gpus(f, CudaOrder::kFastestFirst);
  EXPECT_EQ(fastest.devices, (List{0, 2, 1}));
  EXPECT_TRUE(fastest.certain);
  // What the note has wrong: 0,2 without CUDA_DEVICE_ORDER takes the display card, because CUDA's 2 is the GT 1030.
  EXPECT_EQ(select_gpus(f, "0,2", CudaOrder::kFastestFirst).devices, (List{0, 1}));
  EXPECT_EQ(select_gpus(f, "0,2", CudaOrder::kPciBusId).devices, (List{0, 2}));
  EXPECT_EQ(select_gpus(f, "0,1", CudaOrder::kFastestFirst).devices, (List{0, 2}));
  for (CudaOrder order : {CudaOrder::kFastestFirst, CudaOrder::kPciBusId})
    EXPECT_EQ(select_gpus(f, "GPU-ff67,GPU-ac50", order).devices, (List{2, 0}));
}

TEST(CudaOrder, IsUncertainWhereTheFiguresDisagree) {
  GpuFacts f;
  f.devices = {card(0, "NVIDIA A100-PCIE-40GB", "GPU-a", 8, 0, 108, 1410, 40),
               card(1, "NVIDIA GeForce RTX 3090", "GPU-b", 8, 6, 82, 2100, 24)};
  EXPECT_FALSE(enumerate_gpus(f, CudaOrder::kFastestFirst).certain);
  EXPECT_TRUE(enumerate_gpus(f, CudaOrder::kPciBusId).certain);
  f.devices[1] = f.devices[0];
  f.devices[1].index = 1;
  EXPECT_EQ(enumerate_gpus(f, CudaOrder::kFastestFirst).devices, (List{0, 1}));
  EXPECT_TRUE(enumerate_gpus(f, CudaOrder::kFastestFirst).certain);
}

TEST(CudaOrder, ALostGpuIsNotCounted) {
  GpuFacts f = field_note();
  f.devices[0].fault = "GPU is lost";
  EXPECT_EQ(enumerate_gpus(f, CudaOrder::kPciBusId).devices, (List{1, 2}));
  EXPECT_EQ(select_gpus(f, "0,1", CudaOrder::kPciBusId).devices, (List{1, 2}));
}

TEST(CudaOrder, TheVariablesOwnValue) {
  EXPECT_EQ(cuda_order_of(std::nullopt), CudaOrder::kFastestFirst);
  EXPECT_EQ(cuda_order_of("PCI_BUS_ID"), CudaOrder::kPciBusId);
  EXPECT_EQ(cuda_order_of("pci_bus_id"), CudaOrder::kFastestFirst);
  EXPECT_EQ(cuda_order_of("FASTEST_FIRST"), CudaOrder::kFastestFirst);
}

struct Row {
  const char* value;
  List devices;
  Why why;
  const char* refused;
};

TEST(VisibleDevices, EveryKindOfValue) {
  GpuFacts f = field_note();
  const Row rows[] = {
      {"0", {0}, Why::kNone, ""},
      {"2,0", {2, 0}, Why::kNone, ""},
      {" 0 , 2", {0, 2}, Why::kNone, ""},
      {"", {}, Why::kNotANumber, ""},
      {"-1", {}, Why::kNotANumber, "-1"},
      {"0,2,-1,1", {0, 2}, Why::kNotANumber, "-1"},
      {"0,9,1", {0}, Why::kNoSuchIndex, "9"},
      {"0,,1", {0}, Why::kNotANumber, ""},
      {"0,1,0", {}, Why::kTwice, "0"},
      {"0,00", {}, Why::kTwice, "00"},
      {"1gpu2,2ampere", {1, 2}, Why::kNone, ""},
      {"NoDevFiles", {}, Why::kNotANumber, "NoDevFiles"},
      {"99999999999999999999", {}, Why::kNoSuchIndex, "99999999999999999999"},
      {"GPU-ac50e9bd-5330-6ce2-2d4b-8f95df663b60", {0}, Why::kNone, ""},
      {"GPU-ff,GPU-ac", {2, 0}, Why::kNone, ""},
      {"GPU-a", {}, Why::kAmbiguous, "GPU-a"},
      {"GPU-ff,GPU-12345678", {2}, Why::kNoSuchUuid, "GPU-12345678"},
      {"GPU-ff,1", {2}, Why::kMixed, "1"},
      {"1,GPU-ff", {1}, Why::kMixed, "GPU-ff"},
      {"GPU-ff,GPU-ff67", {}, Why::kTwice, "GPU-ff67"},
      {"GPU-ff, GPU-ac", {2}, Why::kMixed, " GPU-ac"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.value);
    Selection s = select_gpus(f, row.value, CudaOrder::kPciBusId);
    EXPECT_EQ(s.devices, row.devices);
    EXPECT_EQ(s.why, row.why);
    EXPECT_EQ(s.refused, row.refused);
  }
  EXPECT_EQ(select_gpus(f, std::nullopt, CudaOrder::kFastestFirst).devices, (List{0, 2, 1}));
}

TEST(VisibleDevices, MigByNewAndOldNames) {
  GpuFacts f = field_note();
  f.devices[2].mig = true;
  f.devices[2].mig_devices = {"MIG-11112222-3333-4444-5555-666677778888", "MIG-9999aaaa-3333-4444-5555-666677778888"};
  EXPECT_EQ(select_gpus(f, "MIG-1111,MIG-9999", CudaOrder::kPciBusId).devices, (List{2, 2}));
  EXPECT_EQ(select_gpus(f, "MIG-GPU-ff67d0d7-648f-d302-c50e-49297407cd04/1/0", CudaOrder::kPciBusId).devices, (List{2}));
  EXPECT_EQ(select_gpus(f, "MIG-dead", CudaOrder::kPciBusId).why, Why::kNoSuchUuid);
}

}  // namespace
}  // namespace phalanx::machine
