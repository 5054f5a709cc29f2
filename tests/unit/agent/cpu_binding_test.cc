#include "agent/ranks/cpu_binding.h"

#include <gtest/gtest.h>

namespace phalanx::agent {
namespace {

cpu_set_t now() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(0, sizeof(set), &set), 0);
  return set;
}

TEST(CpuBinding, HoldsAsLongAsItLives) {
  cpu_set_t before = now();
  int first = 0;
  while (!CPU_ISSET(static_cast<size_t>(first), &before)) ++first;
  {
    CpuBinding binding(std::to_string(first) + "," + std::to_string(first) + "-" + std::to_string(first));
    EXPECT_TRUE(binding.bound());
    cpu_set_t during = now();
    EXPECT_EQ(CPU_COUNT(&during), 1);
    EXPECT_TRUE(CPU_ISSET(static_cast<size_t>(first), &during));
  }
  cpu_set_t after = now();
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(CpuBinding, WhatMakesNoSenseBindsNothing) {
  cpu_set_t before = now();
  for (const char* list : {"", "x", "3-1", "0-", "-1", "99999", "1023", "0;1"}) {
    CpuBinding binding(list);
    EXPECT_FALSE(binding.bound()) << list;
    cpu_set_t during = now();
    EXPECT_TRUE(CPU_EQUAL(&before, &during)) << list;
  }
}

}  // namespace
}  // namespace phalanx::agent
