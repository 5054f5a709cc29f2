#include "machine/outside.h"

#include <gtest/gtest.h>

namespace phalanx::machine {
namespace {

TEST(Outside, WhatTheHostsSideWroteIsRead) {
  const Outside all = parse_outside("net=net:[4026531840] pid=pid:[4026531836] gpus=8 infiniband=1 init=812");
  EXPECT_EQ(all.net_space, "net:[4026531840]");
  EXPECT_EQ(all.pid_space, "pid:[4026531836]");
  EXPECT_EQ(all.gpus, 8);
  EXPECT_EQ(all.infiniband, true);
  EXPECT_EQ(all.init, 812);
}

TEST(Outside, WhatIsMissingOrMalformedIsNotKnown) {
  for (const char* text : {"", "init=", "net=net:[x] pid=net:[1] gpus=-1 infiniband=2 init=0", "net=net:[] gpus=99999 init=99999999999",
                           "net=net:[40265318404026531840402653184040265318] =1 x", "gpus=8x pid=pid:[1"}) {
    const Outside none = parse_outside(text);
    EXPECT_EQ(none.net_space + none.pid_space, "") << text;
    EXPECT_FALSE(none.gpus || none.infiniband || none.init != 0) << text;
  }
}

TEST(Outside, OwnSpacesHaveTheFormThatIsCompared) {
  EXPECT_EQ(parse_outside("pid=" + own_space("/proc", "pid")).pid_space, own_space("/proc", "pid"));
  EXPECT_EQ(own_space("/nonexistent", "pid"), "");
}

}  // namespace
}  // namespace phalanx::machine
