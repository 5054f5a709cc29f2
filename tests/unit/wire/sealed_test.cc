#include "wire/sealed.h"

#include <gtest/gtest.h>

namespace phalanx::wire {
namespace {

const std::string kToken = "a token that nobody guesses";

struct Pair {
  SealedStream dialer{Side::kDialer, kToken, std::string(kNonceBytes, 'd')};
  SealedStream listener;
  explicit Pair(const std::string& token = kToken) : listener(Side::kListener, token, std::string(kNonceBytes, 'l')) {}
  // Byte by byte, as a slow network brings them. The last error.
  base::Status meet() {
    std::string to_listener = dialer.greeting(), to_dialer;
    base::Status last = base::ok();
    while (!to_listener.empty() || !to_dialer.empty()) {
      std::string reply;
      if (!to_listener.empty()) {
        base::Status fed = listener.feed(to_listener.substr(0, 1), to_dialer);
        if (!fed.ok()) return fed;
        to_listener.erase(0, 1);
        continue;
      }
      base::Status fed = dialer.feed(to_dialer.substr(0, 1), to_listener);
      if (!fed.ok()) return fed;
      to_dialer.erase(0, 1);
    }
    return last;
  }
};

std::string received(SealedStream& stream, std::string_view bytes) {
  std::string reply;
  base::Status fed = stream.feed(bytes, reply);
  if (!fed.ok()) return "refused: " + fed.error().message;
  base::Result<std::optional<Record>> record = stream.next();
  if (!record.ok()) return "refused: " + record.error().message;
  return record->has_value() ? (*record)->payload : "nothing yet";
}

TEST(Sealed, RecordsTravelInBothDirectionsAndAreNotReadable) {
  Pair pair;
  ASSERT_TRUE(pair.meet().ok());
  ASSERT_TRUE(pair.dialer.open() && pair.listener.open());
  const std::string record = pair.dialer.seal(RecordType::kData, "secret");
  EXPECT_EQ(record.find("secret"), std::string::npos);
  EXPECT_EQ(received(pair.listener, record.substr(0, 20)), "nothing yet");
  EXPECT_EQ(received(pair.listener, record.substr(20)), "secret");
  EXPECT_EQ(received(pair.dialer, pair.listener.seal(RecordType::kData, "")), "");
  EXPECT_NE(pair.dialer.seal(RecordType::kData, "secret"), record) << "equal texts do not look equal";
}

TEST(Sealed, AnotherTokenIsNoticedByTheOneThatDials) {
  Pair pair("a token of somebody else");
  base::Status met = pair.meet();
  ASSERT_FALSE(met.ok());
  EXPECT_EQ(met.error().kind, base::ErrorKind::kUnreachable);
  EXPECT_FALSE(pair.dialer.open());
  EXPECT_FALSE(pair.listener.open()) << "it has seen no proof";
}

// An attacker without the token who answers in the place of a node.
TEST(Sealed, TheListenerBelievesNoProofButTheDialers) {
  SealedStream listener(Side::kListener, kToken, std::string(kNonceBytes, 'l'));
  std::string reply;
  ASSERT_TRUE(listener.feed(std::string(kJoinMagic) + std::string(kNonceBytes, 'x'), reply).ok());
  base::Status sent_back = listener.feed(reply.substr(kNonceBytes), reply);  // its own proof
  ASSERT_FALSE(sent_back.ok());
  EXPECT_EQ(sent_back.error().kind, base::ErrorKind::kUnreachable);
  SealedStream other(Side::kListener, kToken, std::string(kNonceBytes, 'l'));
  EXPECT_EQ(other.feed("GET / HTTP/1.1\r\n", reply).error().kind, base::ErrorKind::kInternal);
}

TEST(Sealed, NothingCanBeChangedRepeatedLeftOutOrSentBack) {
  for (size_t at : {0u, 4u, 6u, 40u}) {
    Pair pair;
    ASSERT_TRUE(pair.meet().ok());
    std::string record = pair.dialer.seal(RecordType::kData, "run this");
    record[at] = static_cast<char>(record[at] ^ 1);
    const std::string got = received(pair.listener, record);
    EXPECT_TRUE(got.starts_with("refused: ") || got == "nothing yet") << at << got;
  }
  Pair pair;
  ASSERT_TRUE(pair.meet().ok());
  const std::string first = pair.dialer.seal(RecordType::kData, "1"), second = pair.dialer.seal(RecordType::kData, "2");
  Pair twice;
  ASSERT_TRUE(twice.meet().ok());  // the nonces of these tests are the same, so are the keys
  EXPECT_EQ(received(twice.listener, first), "1");
  EXPECT_TRUE(received(twice.listener, first).starts_with("refused: "));
  EXPECT_TRUE(received(pair.listener, second).starts_with("refused: ")) << "the first is missing";
  EXPECT_TRUE(received(pair.dialer, first).starts_with("refused: ")) << "its own";
}

TEST(Sealed, ARecordThatIsTooLongIsRefusedBeforeItHasCome) {
  Pair pair;
  ASSERT_TRUE(pair.meet().ok());
  EXPECT_TRUE(received(pair.listener, std::string("\xff\xff\xff\xff\x05", 5)).starts_with("refused: "));
}

TEST(Sealed, AnotherProcessGoesOn) {
  Pair pair;
  ASSERT_TRUE(pair.meet().ok());
  EXPECT_EQ(received(pair.listener, pair.dialer.seal(RecordType::kData, "1")), "1");
  const std::string half = pair.dialer.seal(RecordType::kData, "2");
  std::string reply;
  ASSERT_TRUE(pair.listener.feed(half.substr(0, 9), reply).ok());
  base::Result<SealedStream> resumed = SealedStream::resume(pair.listener.state());
  ASSERT_TRUE(resumed.ok());
  EXPECT_EQ(received(*resumed, half.substr(9)), "2");
  EXPECT_EQ(received(pair.dialer, resumed->seal(RecordType::kEnd, "3")), "3");
  EXPECT_FALSE(SealedStream::resume("").ok());
  EXPECT_FALSE(SealedStream::resume(pair.listener.state() + "x").ok());
}

}  // namespace
}  // namespace phalanx::wire
