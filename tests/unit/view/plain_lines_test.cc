// The view of a run where standard output is no terminal: plain lines.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/text.h"
#include "view_input.h"

namespace phalanx::view {
namespace {

using std::chrono::milliseconds;
using wire::Stream;

class OffTerminal : public testing::Test {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);
    loop_ = std::move(os::Loop::create()).value();
    out_ = std::move(os::make_pipe()).value();
    err_ = std::move(os::make_pipe()).value();
    ASSERT_TRUE(os::set_nonblocking(out_.read.get()).ok());
    ASSERT_TRUE(os::set_nonblocking(err_.read.get()).ok());
  }
  std::unique_ptr<View> make(ViewOptions options = {}, const Environment& env = kUtf8) {
    auto view =
        std::make_unique<View>(*loop_, detect_terminal(out_.write.get(), err_.write.get(), env), Speech(Language::kEnglish), options);
    view->set_ranks({"gpu01", "gpu01", "gpu02"});
    return view;
  }
  static std::string all(const os::PipeEnds& pipe) {
    char buffer[65536];
    ssize_t n = ::read(pipe.read.get(), buffer, sizeof(buffer));
    return std::string(buffer, n > 0 ? static_cast<size_t>(n) : 0);
  }
  std::unique_ptr<os::Loop> loop_;
  os::PipeEnds out_, err_;
};

TEST_F(OffTerminal, PlainLinesEachOnItsOwnStream) {
  auto view = make();
  view->say("starting");
  for (int rank = 0; rank < 3; ++rank) view->line(rank, Stream::kStdout, "\x1b[32mready\x1b[0m\n");
  view->line(2, Stream::kStderr, "oops\n");
  view->line(7, Stream::kStderr, "a rank that does not exist\n");
  view->bar(0, "train:  45%|██| 450/1000 [00:12<00:15, 35.9it/s]");
  view->finish(milliseconds(100));
  EXPECT_EQ(all(out_), "[gpu01:0] ready\n[gpu01:1] ready\n[gpu02:2] ready\n");
  EXPECT_EQ(all(err_), "starting\n[gpu02:2] oops\n");
}

TEST_F(OffTerminal, ForcedColours) {
  auto view = make({}, environment({{"CLICOLOR_FORCE", "1"}}));
  view->line(0, Stream::kStdout, "\x1b[32mready\x1b[0m\n");
  view->finish(milliseconds(100));
  EXPECT_EQ(all(out_), "\x1b[36m[gpu01:0]\x1b[0m \x1b[32mready\x1b[0m\x1b[0m\n");
  auto never = make({}, environment({{"CLICOLOR_FORCE", "1"}, {"NO_COLOR", "1"}}));
  never->line(0, Stream::kStdout, "\x1b[32mready\x1b[0m\n");
  never->finish(milliseconds(100));
  EXPECT_EQ(all(out_), "[gpu01:0] ready\n");
}

TEST_F(OffTerminal, WithoutPrefixAndFolded) {
  ViewOptions options;
  options.prefix = false;
  options.fold = Choice::kOn;
  auto view = make(options);
  for (int rank = 0; rank < 3; ++rank) view->line(rank, Stream::kStdout, "ready\n");
  view->finish(milliseconds(100));
  EXPECT_EQ(all(out_), "ready\n(×2 ranks 1–2) ready\n");
}

TEST_F(OffTerminal, ProgressIsALineNowAndThen) {
  ViewOptions options;
  options.progress_line = milliseconds(400);
  auto view = make(options);
  os::Mono end = os::mono_now() + milliseconds(1400);
  for (int i = 1; os::mono_now() < end; ++i) {
    view->progress(0, step(i, 100000));
    loop_->poll(milliseconds(5));
  }
  view->finish(milliseconds(100));
  std::string text = all(err_);
  auto lines = base::split_lines(text);
  ASSERT_GE(lines.size(), 3u);
  EXPECT_LE(lines.size(), 5u);
  for (std::string_view line : lines) EXPECT_TRUE(line.starts_with("phalanx: step ")) << line;
  EXPECT_EQ(all(out_), "");
}

TEST_F(OffTerminal, AReaderThatLeavesDoesNotStopTheRun) {
  auto view = make();
  out_.read.reset();
  for (int i = 0; i < 200; ++i) view->line(0, Stream::kStdout, std::string(50000, 'x') + "\n");
  EXPECT_TRUE(view->wants_more());
  view->line(0, Stream::kStderr, "still here\n");
  view->finish(milliseconds(100));
  EXPECT_EQ(all(err_), "[gpu01:0] still here\n");
}

TEST_F(OffTerminal, AFullDiskIsToldOnce) {
  os::Fd full(::open("/dev/full", O_WRONLY));
  View view(*loop_, detect_terminal(full.get(), err_.write.get(), kUtf8), Speech(Language::kEnglish), {});
  view.set_ranks({"a"});
  for (int i = 0; i < 3; ++i) {
    view.line(0, Stream::kStdout, "x\n");
    loop_->poll(milliseconds(2));
    loop_->poll(milliseconds(2));
  }
  view.finish(milliseconds(100));
  EXPECT_EQ(all(err_), "phalanx: writing to stdout failed: No space left on device; the logs of the ranks are complete\n");
}

}  // namespace
}  // namespace phalanx::view
