#include "base/pickle.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace phalanx::base {
namespace {

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

// A literal with the zero bytes in it.
template <size_t N>
std::string raw(const char (&text)[N]) {
  return std::string(text, N - 1);
}

std::string fault(std::string_view bytes, const PickleLimits& limits = {}) {
  Result<Json> json = parse_pickle(bytes, limits);
  return json.ok() ? "read as " + to_text(*json) : json.error().message;
}

// As torch's pickler writes: protocol 2, memo entries for texts, a shared dict recalled from the memo.
TEST(Pickle, ReadsWhatTorchWrites) {
  std::string bytes =
      raw("\x80\x02}(X\x07\0\0\0versionq\0X\x03\0\0\0"
          "2.4q\x01X\x07\0\0\0entriesq\x02](}(X\x02\0\0\0idq\x03K\x05");
  bytes +=
      raw("X\x04\0\0\0sizeq\x04](K\x01J\0\0\x01\0eX\x04\0\0\0timeq\x05\x8a\x08\x01\0\0\0\x01\0\0\0uq\x06h\x06"
          "eu.");
  Result<Json> json = parse_pickle(bytes);
  ASSERT_TRUE(json.ok()) << json.error().render();
  EXPECT_EQ(to_text(*json),
            R"({"version":"2.4","entries":[{"id":5,"size":[1,65536],"time":4294967297},{"id":5,"size":[1,65536],"time":4294967297}]})");
}

// Python itself is the oracle: random plain data in every protocol, against its own JSON.
TEST(Pickle, AgreesWithPython) {
  const char* script =
      "import json, pickle, random\n"
      "r = random.Random(7)\n"
      "def any(d):\n"
      "    k = r.randrange(9 if d else 6)\n"
      "    if k == 0: return r.choice([None, True, False])\n"
      "    if k == 1: return r.choice([0, 1, 255, 256, 65535, 65536, -1, 2**31, -2**31 - 1, 2**63 - 1, -2**63, r.getrandbits(40)])\n"
      "    if k == 2: return r.choice([0.5, -1e300, 3.25, 1e-7])\n"
      "    if k in (3, 4, 5): return ''.join(r.choice('ab\\n\\u00e9\\u4e2d\\U0001f600') for _ in range(r.randrange(300 if r.random() < .1 "
      "else 9)))\n"
      "    if k == 6: return [any(d - 1) for _ in range(r.randrange(6))]\n"
      "    if k == 7: return tuple(any(d - 1) for _ in range(r.randrange(5)))\n"
      "    return {str(i) + 'k': any(d - 1) for i in range(r.randrange(6))}\n"
      "for n in range(400):\n"
      "    v = any(4)\n"
      "    v = [v, v] if n % 3 == 0 else v\n"
      "    print(pickle.dumps(v, protocol=n % 5 + 1).hex(), json.dumps(v, ensure_ascii=False, separators=(',', ':')))\n";
  std::string command = std::string("python3 -c \"") + script + "\" 2>/dev/null";
  for (size_t at = 0; (at = command.find('$', at)) != std::string::npos; at += 2) command.insert(at, "\\");
  FILE* python = ::popen(command.c_str(), "r");
  ASSERT_NE(python, nullptr);
  std::string out;
  char buffer[65536];
  while (size_t n = std::fread(buffer, 1, sizeof(buffer), python)) out.append(buffer, n);
  if (::pclose(python) != 0) GTEST_SKIP() << "no python3 here";
  size_t compared = 0, begin = 0;
  for (size_t end; (end = out.find('\n', begin)) != std::string::npos; begin = end + 1) {
    std::string_view line = std::string_view(out).substr(begin, end - begin);
    size_t gap = line.find(' ');
    Result<Json> ours = parse_pickle(from_hex(line.substr(0, gap))), theirs = parse_json(line.substr(gap + 1));
    ASSERT_TRUE(ours.ok() && theirs.ok()) << line << "\n" << (ours.ok() ? "" : ours.error().message);
    EXPECT_EQ(*ours, *theirs) << line;
    ++compared;
  }
  EXPECT_EQ(compared, 400u);
}

TEST(Pickle, RefusesWhatWouldRunCode) {
  EXPECT_NE(fault("cos\nsystem\n(S'true'\ntR.").find("a class or function"), std::string::npos);
  EXPECT_NE(fault(raw("\x80\x04\x8c\x02os\x8c\x06system\x93.")).find("a class or function"), std::string::npos);
  EXPECT_NE(fault("(NR.").find("a call"), std::string::npos);
  EXPECT_NE(fault("P1\n.").find("a persistent id"), std::string::npos);
  EXPECT_NE(fault("\x82\x01.").find("an extension"), std::string::npos);
}

TEST(Pickle, BadBytesAreErrors) {
  EXPECT_NE(fault("").find("ends in the middle"), std::string::npos);
  EXPECT_NE(fault("X\xff\xff\xff\x7f"
                  "abc")
                .find("ends in the middle"),
            std::string::npos);
  EXPECT_NE(fault(".").find("a value is missing"), std::string::npos);
  EXPECT_NE(fault("(.").find("a value is missing"), std::string::npos);
  EXPECT_NE(fault("N(u.").find("items for what holds none"), std::string::npos);
  EXPECT_NE(fault("}(Nu.").find("a key without a value"), std::string::npos);
  EXPECT_NE(fault("}(NNu.").find("neither text nor a number"), std::string::npos);
  EXPECT_NE(fault("h\x01.").find("never remembered"), std::string::npos);
  EXPECT_NE(fault("t.").find("a mark is missing"), std::string::npos);
  EXPECT_NE(fault(raw("\x8a\x09\0\0\0\0\0\0\0\0\x01.")).find("more than 64 bits"), std::string::npos);
  EXPECT_NE(fault("\xff.").find("unknown opcode 0xff"), std::string::npos);
}

TEST(Pickle, LimitsHold) {
  EXPECT_NE(fault("]q\x01h\x01"
                  "a.")
                .find("deep"),
            std::string::npos)
      << "a list that holds itself";
  std::string doubling = "]";  // each list holds the one before twice: 2^40 values
  for (int i = 0; i < 40; ++i)
    doubling +=
        "q\x01"
        "0](h\x01h\x01"
        "e";
  EXPECT_NE(fault(doubling + ".").find("more than"), std::string::npos);
  std::string nested;
  for (int i = 0; i < 1000; ++i) nested += ']';
  for (int i = 0; i < 999; ++i) nested += 'a';
  EXPECT_NE(fault(nested + ".").find("deep"), std::string::npos);
  EXPECT_NE(fault(std::string(100, 'N') + ".", {.bytes = 50}).find("more than 50 bytes"), std::string::npos);
  EXPECT_NE(fault("]q\x01(" + std::string(100, 'N') + "e.", {.values = 50}).find("more than 50 values"), std::string::npos);
}

}  // namespace
}  // namespace phalanx::base
