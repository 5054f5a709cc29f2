#include "cli/script_word.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "os/files.h"
#include "scratch.h"

namespace phalanx::cli {
namespace {

using Words = std::vector<std::string>;

TEST(FirstWord, AScriptOrAQuotedCommandIsNamedWithTheLineToType) {
  const std::string folder = scratch::folder("first-word");
  ASSERT_TRUE(os::write_file_atomic(folder + "/train.py", "print(1)\n").ok());
  auto check = [&](const Words& words) { return check_first_word(*parse_command_line(words), folder, "/usr/bin:/bin"); };
  base::Status script = check({"run", "-H", "h1,h2", "-q", "train.py", "--lr", "3e-4"});
  ASSERT_FALSE(script.ok());
  EXPECT_EQ(script.error().message, "\"train.py\" is a Python script, not a program");
  EXPECT_EQ(script.error().hint, "phalanx run -H h1,h2 -q -- python train.py --lr 3e-4");
  base::Status quoted = check({"run", "sh train.sh"});
  ASSERT_FALSE(quoted.ok());
  EXPECT_EQ(quoted.error().hint, "phalanx run -- sh train.sh");
  EXPECT_EQ(base::exit_code(quoted.error().kind), 2);
  for (const Words& words :
       {Words{"run", "sh", "train.py"}, Words{"run", "other.py"}, Words{"run", "nothing here"}, Words{"train", "train.py"}})
    EXPECT_TRUE(check(words).ok()) << words.back();
  base::Status apart = check({"run", "--sync", folder, "-H", "h1", "--", "true"});
  ASSERT_FALSE(apart.ok());
  EXPECT_EQ(apart.error().hint, "write --sync=" + folder);
  ASSERT_EQ(::chmod((folder + "/train.py").c_str(), 0755), 0);
  EXPECT_TRUE(check({"run", "./train.py"}).ok()) << "it can be started";
}

TEST(CopiedScript, OneThatIsNotHereWillNotBeThere) {
  const std::string folder = scratch::folder("copied-script");
  ASSERT_TRUE(os::write_file_atomic(folder + "/train.py", "print(1)\n").ok());
  auto check = [&](const Words& words) { return check_copied_script(*parse_command_line(words), folder); };
  base::Status typo = check({"run", "--sync", "--", "python3", "trian.py"});
  ASSERT_FALSE(typo.ok());
  EXPECT_EQ(typo.error().message, folder + "/trian.py does not exist, so it is not copied to the hosts");
  EXPECT_EQ(typo.error().hint, "did you mean train.py?");
  base::Status other = check({"run", "--sync", "--", "bash", "sub/launch.sh"});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().hint, "ls " + folder + "/sub");
  for (const Words& words : {Words{"run", "--sync", "--", "python3", "train.py"}, Words{"run", "--sync", "--", "python3", "-m", "pkg"},
                             Words{"run", "--sync", "--", "python3", "/opt/there.py"}, Words{"run", "--sync", "--", "nosuch.py"}})
    EXPECT_TRUE(check(words).ok()) << words.back();
}

}  // namespace
}  // namespace phalanx::cli
