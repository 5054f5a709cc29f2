// The two ends of a link, on the loopback; and those who come to it uninvited.
#include "agent/copy_link.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "wire/copy_messages.h"

namespace phalanx::agent {
namespace {

const std::string kKey = "0123456789abcdef0123456789abcdef";

class CopyLink : public testing::Test {
 protected:
  void listen() {
    auto frame = [this](const wire::Frame& one) {
      if (one.type == wire::FrameType::kCopyBytes) got_ += wire::decode<wire::CopyBytes>(one.payload)->data;
      return got_ != "useless";
    };
    inlet_ = std::make_unique<CopyInlet>(*loop_, CopyInlet::Handlers{frame, [this] { ++ended_; }});
    base::Result<uint16_t> port = inlet_->listen("127.0.0.1", kKey);
    ASSERT_TRUE(port.ok());
    port_ = *port;
  }
  void dial(const std::string& key) {
    outlet_ = std::make_unique<CopyOutlet>(*loop_);
    outlet_->dial({"127.0.0.1", port_}, key,
                  [this](base::Status status) { dialed_.push_back(status.ok() ? "ok" : status.error().message); });
  }
  template <typename Done>
  bool until(Done done, os::milliseconds most = os::milliseconds(5000)) {
    for (os::Mono begin = os::mono_now(); !done() && os::mono_now() - begin < most;) loop_->poll(os::milliseconds(10));
    return done();
  }
  void pass(std::string_view bytes, wire::FrameType type = wire::FrameType::kCopyBytes) {
    std::string frames;
    if (type == wire::FrameType::kCopyBytes) ASSERT_TRUE(wire::encode(frames, wire::CopyBytes{bytes}).ok());
    else ASSERT_TRUE(wire::put_frame(frames, type, bytes).ok());
    wire::FrameReader reader;
    reader.feed(wire::kStreamMagic);
    reader.feed(frames);
    outlet_->pass_on(**reader.next());
  }
  os::Fd visit() const {
    os::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) fd.reset();
    return fd;
  }

  std::unique_ptr<os::Loop> loop_ = std::move(os::Loop::create()).value();
  std::unique_ptr<CopyInlet> inlet_;
  std::unique_ptr<CopyOutlet> outlet_;
  std::string got_;
  std::vector<std::string> dialed_;
  int ended_ = 0;
  uint16_t port_ = 0;
};

TEST_F(CopyLink, FramesComeAsTheyWereSent) {
  listen();
  dial(kKey);
  ASSERT_TRUE(until([&] { return !dialed_.empty(); }));
  ASSERT_EQ(dialed_[0], "ok");
  std::string sent;
  for (int i = 0; i < 200; ++i) {
    const std::string piece(static_cast<size_t>(i) * 999, static_cast<char>(i));
    pass(piece);
    sent += piece;
  }
  ASSERT_TRUE(until([&] { return got_.size() == sent.size(); }));
  EXPECT_EQ(got_, sent);
  EXPECT_FALSE(visit().valid()) << "it still listens";
  outlet_.reset();
  EXPECT_TRUE(until([&] { return ended_ == 1; }));
}

TEST_F(CopyLink, AnotherKeyIsNotHeard) {
  listen();
  dial("another key of thirty-two bytes!");
  ASSERT_TRUE(until([&] { return !dialed_.empty(); }));
  EXPECT_EQ(dialed_[0], "the token is another one");
  pass("evil");
  dial(kKey);
  ASSERT_TRUE(until([&] { return dialed_.size() == 2; }));
  EXPECT_EQ(dialed_[1], "ok");
  pass("good");
  ASSERT_TRUE(until([&] { return got_.size() >= 4; }));
  EXPECT_EQ(got_, "good");
  EXPECT_EQ(ended_, 0);
}

// Silent ones, and one that writes rubbish, take no place for long from the one that holds the key.
TEST_F(CopyLink, ACrowdDoesNotKeepItsPeerOut) {
  listen();
  std::vector<os::Fd> crowd;
  for (int i = 0; i < 30; ++i) {
    crowd.push_back(visit());
    ASSERT_TRUE(crowd.back().valid());
    if (i % 2) {
      ASSERT_EQ(::send(crowd.back().get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
    }
    loop_->poll(os::milliseconds(1));
  }
  dial(kKey);
  ASSERT_TRUE(until([&] { return !dialed_.empty(); }));
  EXPECT_EQ(dialed_[0], "ok");
  pass("good");
  ASSERT_TRUE(until([&] { return !got_.empty(); }));
  for (const os::Fd& one : crowd) {
    char byte = 0;
    EXPECT_LE(::recv(one.get(), &byte, 1, 0), 0) << "an answer for somebody who has proved nothing";
  }
}

TEST_F(CopyLink, OtherFramesEndTheLink) {
  listen();
  dial(kKey);
  ASSERT_TRUE(until([&] { return !dialed_.empty(); }));
  pass("x", wire::FrameType::kStart);
  EXPECT_TRUE(until([&] { return ended_ == 1; }));
  EXPECT_EQ(got_, "");
}

TEST_F(CopyLink, WhatIsOfNoUseEndsTheLink) {
  listen();
  dial(kKey);
  ASSERT_TRUE(until([&] { return !dialed_.empty(); }));
  pass("useless");
  pass("more");
  EXPECT_TRUE(until([&] { return ended_ == 1; }));
  EXPECT_EQ(got_, "useless") << "nothing comes after that";
}

TEST_F(CopyLink, NobodyThere) {
  port_ = 1;
  dial(kKey);
  ASSERT_TRUE(until([&] { return !dialed_.empty(); }));
  EXPECT_EQ(dialed_[0], "Connection refused");
  EXPECT_FALSE(outlet_->linked());
}

}  // namespace
}  // namespace phalanx::agent
