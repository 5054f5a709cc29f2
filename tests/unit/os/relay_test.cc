#include "os/relay.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/files.h"
#include "scratch.h"

namespace phalanx::os {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

size_t send_to(Relay& relay, const std::string& text) {
  ssize_t n = ::send(relay.fd(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return n > 0 ? static_cast<size_t>(n) : 0;
}

TEST(RelayTest, WhatIsTakenIsInTheFile) {
  std::string path = scratch::folder("relay") + "/file";
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  Relay relay = Relay::to(file.get()).value();
  std::string sent;
  for (int i = 0; i < 300; ++i) {
    std::string piece(static_cast<size_t>(1 + i * 37 % 5000), static_cast<char>('a' + i % 26));
    ASSERT_EQ(send_to(relay, piece), piece.size());
    sent += piece;
    if (i % 10 == 0) {
      ASSERT_TRUE(relay.wait_taken(seconds(5)));
      ASSERT_EQ(read_file(path, 1 << 24).value(), sent);
    }
  }
  ASSERT_TRUE(relay.wait_taken(seconds(5)));
  EXPECT_EQ(read_file(path, 1 << 24).value(), sent);
  EXPECT_EQ(relay.error_number(), 0);
}

TEST(RelayTest, ADiskThatHangsIsNotWaitedFor) {
  std::string path = scratch::folder("relay") + "/fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  Mono began = mono_now();
  Relay relay = Relay::to_file(path).value();  // its open waits for a reader
  EXPECT_EQ(send_to(relay, "text\n"), 5u);
  EXPECT_FALSE(relay.wait_taken(milliseconds(50)));
  EXPECT_LT(mono_now() - began, seconds(2));
  Fd reader(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char buffer[16];
  EXPECT_EQ(::read(reader.get(), buffer, sizeof(buffer)), 5);
  EXPECT_TRUE(relay.wait_taken(seconds(5)));
}

TEST(RelayTest, AFullDiskIsTold) {
  Relay relay = Relay::to_file("/dev/full").value();
  send_to(relay, "text\n");
  EXPECT_TRUE(relay.wait_taken(seconds(5)));
  for (Mono last = mono_now() + seconds(5); relay.error_number() == 0 && mono_now() < last;) send_to(relay, "x");
  EXPECT_EQ(relay.error_number(), ENOSPC);
}

}  // namespace
}  // namespace phalanx::os
