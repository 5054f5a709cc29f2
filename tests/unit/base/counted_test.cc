#include "base/counted.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace phalanx::base {
namespace {

TEST(Counted, ACountOfOneTakesTheSingularAndItsVerb) {
  EXPECT_EQ(counted("{} hosts", 1), "1 host");
  EXPECT_EQ(counted("{} hosts", 2), "2 hosts");
  EXPECT_EQ(counted("{} hosts", 0), "0 hosts");
  EXPECT_EQ(counted("{} hosts", 11), "11 hosts");
  EXPECT_EQ(counted("{} processes were killed", size_t{1}), "1 process was killed");
  EXPECT_EQ(counted("{} of {} hosts are down", 1, 1), "1 of 1 host is down");
  EXPECT_EQ(counted("{} of {} hosts", 1, 4), "1 of 4 hosts");
  EXPECT_EQ(counted("{} files, {} lines", 1, 7), "1 file, 7 lines");
  EXPECT_EQ(counted("{:.0f} pages a second", 1.2), "1 page a second");
  EXPECT_EQ(counted("{} entries ({} directories)", std::string("1"), 1), "1 entry (1 directory)");
}

TEST(Counted, EveryNounHasItsPlural) {
  static constexpr std::string_view kForms =
      "argument/arguments attempt/attempts batch/batches byte/bytes card/cards case/cases channel/channels code/codes "
      "communicator/communicators connection/connections copy/copies core/cores CPU/CPUs day/days device/devices "
      "dimension/dimensions directory/directories document/documents element/elements entry/entries error/errors field/fields "
      "file/files GPU/GPUs head/heads host/hosts instance/instances item/items kind/kinds lane/lanes layer/layers level/levels "
      "line/lines link/links log/logs machine/machines micro-batch/micro-batches network/networks node/nodes note/notes "
      "number/numbers operation/operations other/others package/packages packet/packets page/pages pair/pairs parameter/parameters "
      "part/parts pass/passes port/ports problem/problems process/processes rank/ranks replay/replays restart/restarts row/rows "
      "run/runs sample/samples secret/secrets sequence/sequences slot/slots socket/sockets step/steps target/targets task/tasks "
      "tensor/tensors thread/threads time/times timeout/timeouts token/tokens unit/units validation/validations value/values "
      "variable/variables warning/warnings worker/workers";
  for (std::string_view forms : split(kForms, ' ')) {
    const std::string one(forms.substr(0, forms.find('/'))), many(forms.substr(one.size() + 1));
    EXPECT_EQ(singular(" " + many), " " + one);
    EXPECT_EQ(counts_in_plural("1 " + one), "1 " + many);
    EXPECT_EQ(singular(" " + one), " " + one);
  }
}

TEST(Counted, AdjectivesMayStandBetween) {
  EXPECT_EQ(counted("and {} more lines", 1), "and 1 more line");
  EXPECT_EQ(counted("{} usable InfiniBand ports", 1), "1 usable InfiniBand port");
  EXPECT_EQ(counted("{} of the logs", 1), "1 of the logs");
  EXPECT_EQ(counted("{}, hosts", 1), "1, hosts");
  EXPECT_EQ(counted("{} takes no arguments", 1), "1 takes no arguments");
  EXPECT_EQ(counted("{} tokens/s, {} slots=2", 1, 1), "1 tokens/s, 1 slots=2");
}

TEST(Counted, ANumberThatNamesOneOfManyIsNoCount) {
  EXPECT_EQ(counted("rank {} runs", 1), "rank 1 runs");
  EXPECT_EQ(counted("GPU {} hosts {} ranks", 1, 1), "GPU 1 hosts 1 rank");
  EXPECT_EQ(counted("sm_{} cards", 1), "sm_1 cards") << "no blank before it";
}

TEST(Counted, WhatFormatsCanHoldIsKept) {
  EXPECT_EQ(counted("{1} ranks of {0} hosts", 1, 1), "1 rank of 1 host");
  EXPECT_EQ(counted("{{}} {} ranks}}", 1), "{} 1 rank}");
  EXPECT_EQ(counted("{:>{}} ranks", 1, 3), "  1 ranks");
  EXPECT_EQ(counted("{:>3} ranks", 1), "  1 ranks") << "a column";
  EXPECT_EQ(counted("no values"), "no values");
}

TEST(Counted, AFormatTellsWhetherItHasCounts) {
  for (const char* format : {"{} hosts", "{0} of {1:>3} more files", "{}: killed {} processes"}) EXPECT_TRUE(has_counts(format)) << format;
  for (const char* format : {"", "{", "{} is", "rank {} runs", "{} of hosts", "{{}} hosts are"}) EXPECT_FALSE(has_counts(format)) << format;
}

TEST(Counted, ALineLeadsBackToItsFormat) {
  EXPECT_EQ(counts_in_plural("h1: killed 1 process of the run"), "h1: killed 1 processes of the run");
  EXPECT_EQ(counts_in_plural("1 rank is left on 1 host"), "1 ranks are left on 1 hosts");
  for (const char* same : {"", "1", "rank 1 host", "11 host", "step 1 of 1", "a1 host"}) EXPECT_EQ(counts_in_plural(same), same);
}

}  // namespace
}  // namespace phalanx::base
