#include "doctor/commands.h"

#include <gtest/gtest.h>

namespace phalanx::doctor {
namespace {

Effect effect(std::string_view line) {
  std::optional<CommandEffect> known = effect_of(line);
  EXPECT_TRUE(known) << line;
  return known ? known->effect : Effect::kDestroys;
}

TEST(Commands, LookingIsToldFromChangingAndDestroying) {
  for (const char* looks : {"ls -l <path>", "nvidia-smi -q | grep -i replay", "sudo dmesg -T | grep -iE 'xid|fallen'",
                            "timeout 5 stat -f '/mnt'", "ss -ltnp 'sport = :<port>'", "sudo ethtool -S ens3 2>/dev/null | tail"})
    EXPECT_EQ(effect(looks), Effect::kLooks) << looks;
  for (const char* changes : {"export NCCL_DEBUG=INFO", "sudo sysctl -w net.ipv4.conf.all.rp_filter=2", "kill -CONT 812",
                              "echo wait >> run", "echo a | sudo tee -a /etc/hosts"})
    EXPECT_EQ(effect(changes), Effect::kChanges) << changes;
  for (const char* destroys : {"kill 812", "sudo kill -9 812", "sudo reboot", "sudo umount -f -l /mnt; sudo mount /mnt", "ls && rm -r x",
                               "nvidia-smi --gpu-reset -i 3", "echo a | sudo tee /etc/x", "cat a > b", "A=1 timeout 3 rm x"})
    EXPECT_EQ(effect(destroys), Effect::kDestroys) << destroys;
}

TEST(Commands, WhatIsNotKnownIsNotCalledHarmless) {
  EXPECT_FALSE(effect_of("frobnicate --all"));
  EXPECT_FALSE(effect_of("ls; frobnicate"));
  EXPECT_FALSE(effect_of("systemctl isolate rescue"));
}

TEST(Commands, ACostIsAComment) {
  EXPECT_EQ(with_cost("kill 812", base::Language::kEnglish), "kill 812   # terminates the process; its unsaved data is lost");
  EXPECT_EQ(with_cost("ls", base::Language::kEnglish), "ls");
}

TEST(Commands, PlaceholdersAreNotRedirections) {
  EXPECT_TRUE(has_placeholder("kill <pid>"));
  EXPECT_TRUE(has_placeholder("docker run --gpus all …"));
  EXPECT_FALSE(has_placeholder("setsid phalanx run < /dev/null > log 2>&1 &"));
  EXPECT_EQ(effect("ping -c 3 <host>"), Effect::kLooks);
}

}  // namespace
}  // namespace phalanx::doctor
