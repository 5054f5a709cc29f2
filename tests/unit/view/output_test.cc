#include "view/terminal/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace phalanx::view {
namespace {

using std::chrono::milliseconds;

class OutputTest : public testing::Test {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);
    loop_ = std::move(os::Loop::create()).value();
    pipe_ = std::move(os::make_pipe()).value();
  }
  std::string read_some(int fd, size_t most = 1 << 16) {
    std::string buffer(most, '\0');
    ssize_t n = ::read(fd, buffer.data(), buffer.size());
    return buffer.substr(0, n > 0 ? static_cast<size_t>(n) : 0);
  }
  // Runs the loop and reads until `size` bytes came.
  std::string receive(int fd, size_t size) {
    std::string all;
    os::Mono end = os::mono_now() + std::chrono::seconds(20);
    while (all.size() < size && os::mono_now() < end) {
      loop_->poll(milliseconds(1));
      pollfd ready{fd, POLLIN, 0};
      if (::poll(&ready, 1, 1) == 1) all += read_some(fd);
    }
    return all;
  }
  static std::string numbers(size_t bytes) {
    std::string text;
    for (int i = 0; text.size() < bytes; ++i) text += std::to_string(i) + "\n";
    return text;
  }
  // Fills it while nobody reads, then reads: everything comes, in order, and room is told.
  void fill_and_read(Output& output, int reader) {
    int rooms = 0;
    output.on_room([&] { ++rooms; });
    std::string text = numbers(3 << 20), sent;
    while (output.wants_more() && sent.size() < text.size()) {
      std::string part = text.substr(sent.size(), 60000);
      output.buffer() += part;
      output.pump();
      sent += part;
    }
    EXPECT_FALSE(output.wants_more());
    EXPECT_LT(sent.size(), 2 * Output::kBound + (1 << 18)) << "the bound and what the kernel holds";
    for (int i = 0; i < 5; ++i) loop_->poll(milliseconds(0));
    EXPECT_EQ(rooms, 0);
    EXPECT_TRUE(receive(reader, sent.size()) == sent);
    loop_->poll(milliseconds(1));
    EXPECT_EQ(rooms, 1);
    EXPECT_EQ(output.pending(), 0u);
  }
  std::unique_ptr<os::Loop> loop_;
  os::PipeEnds pipe_;
};

TEST_F(OutputTest, APipeWhoseReaderStops) {
  Output output(*loop_, pipe_.write.get());
  fill_and_read(output, pipe_.read.get());
}

TEST_F(OutputTest, WithoutProcTheSame) {
  Output output(*loop_, pipe_.write.get(), false);
  fill_and_read(output, pipe_.read.get());
}

TEST_F(OutputTest, ASocketTheSame) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  os::Fd a(ends[0]), b(ends[1]);
  Output output(*loop_, a.get());
  fill_and_read(output, b.get());
}

TEST_F(OutputTest, TheInheritedDescriptionStaysBlocking) {
  Output output(*loop_, pipe_.write.get());
  EXPECT_EQ(::fcntl(pipe_.write.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(OutputTest, ManyAppendsAreOneWrite) {
  Output output(*loop_, pipe_.write.get());
  for (int i = 0; i < 100; ++i) output.buffer() += "line\n";
  EXPECT_EQ(output.pending(), 500u);
  output.pump();
  EXPECT_EQ(output.pending(), 0u);
  EXPECT_EQ(read_some(pipe_.read.get()).size(), 500u);
}

TEST_F(OutputTest, AReaderThatLeavesIsNoError) {
  Output output(*loop_, pipe_.write.get());
  int rooms = 0;
  output.on_room([&] { ++rooms; });
  output.buffer() = numbers(2 << 20);
  output.pump();
  EXPECT_FALSE(output.wants_more());
  pipe_.read.reset();
  for (int i = 0; i < 3; ++i) loop_->poll(milliseconds(10));
  EXPECT_TRUE(output.closed());
  EXPECT_TRUE(output.wants_more()) << "the run continues";
  EXPECT_EQ(rooms, 1);
  EXPECT_EQ(output.error_number(), 0);
  output.buffer() += "more";
  output.pump();
  EXPECT_EQ(output.pending(), 0u);
  EXPECT_TRUE(output.drain(milliseconds(0)));
}

TEST_F(OutputTest, NobodyEverRead) {
  pipe_.read.reset();
  Output output(*loop_, pipe_.write.get());
  output.buffer() += "x";
  output.pump();
  EXPECT_TRUE(output.closed());
}

TEST_F(OutputTest, AClosedDescriptor) {
  Output output(*loop_, 987);
  EXPECT_TRUE(output.closed());
  EXPECT_TRUE(output.wants_more());
}

TEST_F(OutputTest, ARegularFileKeepsItsPlace) {
  char name[] = "/tmp/phalanx-output-XXXXXX";
  os::Fd file(::mkstemp(name));
  ::unlink(name);
  ASSERT_TRUE(os::write_all(file.get(), "head ", "file").ok());
  Output output(*loop_, file.get());
  output.buffer() = numbers(2 << 20);
  size_t size = output.pending();
  output.pump();
  EXPECT_EQ(output.pending(), 0u);
  EXPECT_EQ(::lseek(file.get(), 0, SEEK_CUR), static_cast<off_t>(size + 5));
}

TEST_F(OutputTest, DevNullAndAFullDisk) {
  os::Fd null(::open("/dev/null", O_WRONLY)), full(::open("/dev/full", O_WRONLY));
  Output a(*loop_, null.get()), b(*loop_, full.get());
  a.buffer() = b.buffer() = "text\n";
  a.pump();
  b.pump();
  EXPECT_FALSE(a.closed());
  EXPECT_TRUE(b.closed());
  EXPECT_EQ(b.error_number(), ENOSPC);
}

TEST_F(OutputTest, DrainWaitsNoLongerThanAsked) {
  Output output(*loop_, pipe_.write.get());
  output.buffer() = numbers(1 << 20);
  os::Mono before = os::mono_now();
  EXPECT_FALSE(output.drain(milliseconds(50)));
  EXPECT_GE(os::mono_now() - before, milliseconds(49));
  EXPECT_LT(os::mono_now() - before, milliseconds(2000));
}

}  // namespace
}  // namespace phalanx::view
