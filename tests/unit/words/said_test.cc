#include "words/said.h"

#include <gtest/gtest.h>

namespace phalanx::words {
namespace {

constexpr Language kZh = Language::kChinese;

TEST(Said, WhatTheCatalogueHasIsShownInChineseWithItsValues) {
  EXPECT_EQ(said_in(kZh, "file not found: \"nofile.log\""), "文件不存在：\"nofile.log\"");
  EXPECT_EQ(said_in(kZh, "phalanx run has no option --nope"), "phalanx run 没有选项 --nope");
  EXPECT_EQ(said_in(kZh, "resumed after step 5 of 20"), "从第 5 步之后继续，共 20 步");
  EXPECT_EQ(said_in(Language::kEnglish, "resumed after step 5 of 20"), "resumed after step 5 of 20");
}

TEST(Said, ValuesAreLookedUpAsWell) {
  EXPECT_EQ(said_in(kZh, "model: 0.12 M parameters, vocabulary 256; zero2 over 2 ranks, 1 unit; fp32"),
            "模型：0.12 M 参数，词表 256；zero2，跨 2 个 rank，1 个单元；fp32");
  EXPECT_EQ(said_in(kZh, "mfu is relative to 0.4766 TFLOPS, measured with matrix products on this machine"),
            "mfu 相对于 0.4766 TFLOPS，在本机用矩阵乘法测得");
}

TEST(Said, TheItemsOfAListAreLookedUp) {
  EXPECT_EQ(said_in(kZh, "20 steps in 4s: data 0 %, forward 8 %, waiting for other ranks 75 %, other 1 %"),
            "20 步，用时 4s：数据 0 %，前向 8 %，等待其他 rank 75 %，其他 1 %");
  EXPECT_EQ(said_in(kZh,
                    "phalanx-train on libtorch 1.13.0: 4 ranks, cpu; shared memory of 2 ranks on each of 2 hosts, gloo on 10.0.0.1 "
                    "between 2 ranks; 1 thread per rank"),
            "phalanx-train，libtorch 1.13.0：4 个 rank，cpu；2 台主机上各 2 个 rank 共享内存，gloo，经 10.0.0.1，2 个 rank 之间；每个 rank "
            "1 个线程");
}

TEST(Said, TheWordsOfOthersFollowOurs) {
  EXPECT_EQ(said_in(kZh, "h9: the host name cannot be resolved: ssh: ssh: no"), "h9：无法解析主机名：ssh: ssh: no");
  EXPECT_EQ(said_in(kZh, "'x' was not found: no such program in PATH=/bin"), "找不到 'x'：PATH=/bin 中没有这个程序");
}

TEST(Said, ThePlaceStaysInFrontOfWhatIsWrongThere) {
  EXPECT_EQ(said_in(kZh, "/p/phalanx.yaml:1:8: \"hosts\", character 3: \" \" is not allowed in a host name"),
            "/p/phalanx.yaml:1:8: \"hosts\"，第 3 个字符：主机名中不能有 \" \"");
  EXPECT_EQ(said_in(kZh, "/p/phalanx.yaml:1:17: nproc-per-node: \"x\" is not a whole number from 1 to 4096 or one of auto, gpu, cpu"),
            "/p/phalanx.yaml:1:17: nproc-per-node: \"x\" 既不是 1 到 4096 的整数，也不是下列之一：auto, gpu, cpu");
}

TEST(Said, CausesOfTheEngineAndOfConnections) {
  EXPECT_EQ(said_in(kZh, "model.width 10 is not a multiple of model.heads 3"), "model.width 10 不是 model.heads 3 的倍数");
  EXPECT_EQ(said_in(kZh, "reading the checkpoint failed on ranks 1, 2"), "各 rank 1, 2：读取 checkpoint 失败");
  EXPECT_EQ(said_in(kZh, "h2: the host key is unknown: ssh: Host key verification failed."),
            "h2：主机密钥未知：ssh: Host key verification failed.");
  EXPECT_EQ(said_in(kZh, "no response for 5 s: the host is down, hung, or unreachable"), "5 秒没有应答：主机已关机、挂起或无法到达");
}

TEST(Said, WhatIsNotOursStaysAsItIs) {
  for (const char* text : {"", "a: b", "Traceback (most recent call last):", "RuntimeError: Connection closed by peer",
                           "bind 10.0.0.1:22: Address already in use", "已保存 x", "nothing of this stands in the catalogue"})
    EXPECT_EQ(said_in(kZh, text), text);
  EXPECT_EQ(said_in(kZh, std::string(5000, 'x')), std::string(5000, 'x'));
}

TEST(Said, AnErrorHasChineseLabelsAndTheOutputOfProgramsIsKept) {
  base::Error error = base::fail(base::ErrorKind::kConfig, "no such folder: \"out\"").within("choosing GPUs and addresses");
  error.cause = "其最后的输出：\nerror: no such folder: \"user\"";
  error.hint = "phalanx ps";
  EXPECT_EQ(render(error, kZh),
            "错误：没有这个目录：\"out\"\n  过程：选择 GPU 和地址\n  原因：其最后的输出：\n    error: no such folder: "
            "\"user\"\n\n提示：phalanx ps\n");
  EXPECT_EQ(render(error, Language::kEnglish), error.render());
}

}  // namespace
TEST(Said, AListIsTranslatedLineByLineAndOutputOfProgramsIsNot) {
  base::Error list = base::fail(base::ErrorKind::kConfig, "file not found: x").because("no logs in a\nno logs in b");
  EXPECT_EQ(render(list, kZh), "错误：文件不存在：x\n  原因：a 中没有日志\n    b 中没有日志\n");
  base::Error output = base::fail(base::ErrorKind::kConfig, "file not found: x").because("no logs in a\nno logs in b\nTraceback");
  EXPECT_EQ(render(output, kZh), "错误：文件不存在：x\n  原因：a 中没有日志\n    no logs in b\n    Traceback\n");
}

TEST(Said, AValueIsNotWhatIsLeftOfSeveralTexts) {
  EXPECT_EQ(said_in(kZh, "line 4: train_from_scratch: a: it is not supported"), "第 4 行：train_from_scratch: a：尚不支持");
}

}  // namespace phalanx::words
