// The commands on the pages of causes, as those of the doctor's catalogue, are all known, and name no machine that was never seen.
#include <gtest/gtest.h>

#include "base/text.h"
#include "diagnosis/cause.h"
#include "doctor/commands.h"

namespace diagnosis {
namespace {

TEST(CauseCommands, EveryCommandOfAPageIsKnownAndNamesNoMachine) {
  for (const Cause* cause : causes())
    for (base::Language language : {base::Language::kEnglish, base::Language::kChinese})
      for (std::string_view line : base::split_lines(cause->fix.in(language))) {
        if (!line.starts_with("$ ")) continue;
        EXPECT_TRUE(doctor::effect_of(line.substr(2))) << cause->code << ": " << line;
        for (std::string_view invented : {"gpu0", "192.168.", "10.1.", "4711", "12345", "eth0", "/data/", "mlx5_0"})
          EXPECT_EQ(line.find(invented), std::string_view::npos) << cause->code << ": " << line;
      }
}

}  // namespace
}  // namespace diagnosis
