// Tables of values: what the compiler refuses, and what was compiled.
#include "codes/values.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "codes/code.h"
#include "codes/value_table.h"

namespace phalanx::codes {
namespace {

TEST(ValueTable, IsReadRowByRow) {
  base::Result<ParsedTable> table = parse_value_table(
      "# of NVIDIA\nnumber:int\tcode:code\tnote:text\tkind:a|b\n-79\tGPU-NONE\t\ta\n# more\n80\tGPU-NONE\tx y\tb\n", {"GPU-NONE"});
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(table->columns, 4u);
  EXPECT_EQ(table->cells, (std::vector<std::string>{"-79", "GPU-NONE", "", "a", "80", "GPU-NONE", "x y", "b"}));
}

TEST(ValueTable, RefusesWhatIsNotWhole) {
  struct Case {
    const char *text, *error;
  };
  for (Case c : {
           Case{"", "a table needs a line of columns, and rows"},
           {"# only this\n", "a table needs a line of columns, and rows"},
           {"a:int\n", "a table needs a line of columns, and rows"},
           {"number\n1\n", "line 1: \"number\" is not name:kind"},
           {":int\n1\n", "line 1: \":int\" is not name:kind"},
           {"a:\n1\n", "line 1: \"a:\" is not name:kind"},
           {"a:float\n1\n", "line 1: \"float\" is no kind of column"},
           {"a:int\tb:text\n1\n", "line 2: 1 cells for 2 columns"},
           {"a:int\n1\t2\n", "line 2: 2 cells for 1 columns"},
           {"a:int\n\n1\n", "line 2: a: \"\" is not int"},
           {"a:int\n1x\n", "line 2: a: \"1x\" is not int"},
           {"a:int\n0x10\n", "line 2: a: \"0x10\" is not int"},
           {"a:int\n99999999999999999999\n", "line 2: a: \"99999999999999999999\" is not int"},
           {"a:code\nGPU-NINE\n", "line 2: a: \"GPU-NINE\" is not code"},
           {"a:word\nx y\n", "line 2: a: \"x y\" is not word"},
           {"a:x|y\nz\n", "line 2: a: \"z\" is not x|y"},
           {"a:x|y\nx|y\n", "line 2: a: \"x|y\" is not x|y"},
           {"a:int\n1\n2\n1\n", "line 4: the row is there twice"},
           {"a:text\n\xff\n", "line 2: the row is not UTF-8"},
       }) {
    base::Result<ParsedTable> table = parse_value_table(c.text, {"GPU-NONE"});
    ASSERT_FALSE(table.ok()) << c.text;
    EXPECT_NE(table.error().message.find(c.error), std::string::npos) << table.error().message;
  }
}

TEST(Values, AreFoundByTheirKey) {
  EXPECT_EQ(values("xid").find("79")[1], "GPU-XID-BUS");
  EXPECT_TRUE(values("xid").find("174").empty());
  EXPECT_EQ(values("signals").find("SIGFPE")[1], "RUN-SEGFAULT");
  EXPECT_EQ(number(values("nccl-variables").find("NCCL_BUFFSIZE")[3]), 2147483648);
  for (const ValueTable& table : value_tables()) {
    EXPECT_EQ(table.cells.size(), table.size() * table.columns) << table.name;
    EXPECT_GT(table.size(), 0u) << table.name;
  }
}

// What destroys is printed with its cost, in both languages.
TEST(Values, EveryCommandThatDestroysSaysWhatItCosts) {
  const ValueTable& commands = values("commands");
  for (size_t i = 0; i < commands.size(); ++i) {
    EXPECT_TRUE(commands.row(i)[1] != "destroys" || !commands.row(i)[2].empty()) << commands.row(i)[0];
    EXPECT_EQ(commands.row(i)[2].empty(), commands.row(i)[3].empty()) << commands.row(i)[0];
  }
}

}  // namespace
}  // namespace phalanx::codes
