// The file format: its own example, and files that lie.
#include "engine/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include "base/sha256.h"

using namespace phalanx;

namespace {

using namespace engine::checkpoint;

std::string file_of(const std::string& header, size_t data_bytes) {
  std::string file;
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<char>(uint64_t(header.size()) >> (8 * i)));
  return file + header + std::string(data_bytes, 'x');
}

std::string cause_of(const std::string& file) {
  auto parsed = parse_safetensors(file);
  return parsed.ok() ? "accepted" : parsed.error().cause;
}

TEST(Safetensors, ReadsTheFormatsOwnExample) {
  auto parsed = parse_safetensors(
      file_of(R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F16","shape":[2,2],"data_offsets":[8,16]},)"
              R"("a":{"dtype":"I64","shape":[],"data_offsets":[0,8]},"none":{"dtype":"F32","shape":[0,7],"data_offsets":[16,16]}}   )",
              16));
  ASSERT_TRUE(parsed.ok()) << parsed.error().render();
  ASSERT_EQ(parsed->tensors.size(), 3u);
  EXPECT_EQ(parsed->tensors[0].name, "a");
  EXPECT_EQ(parsed->tensors[1].shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(parsed->metadata.at("format"), "pt");
  EXPECT_EQ(cause_of(file_of("{}", 0)), "accepted");
}

TEST(Safetensors, RefusesWhatLies) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "needs 8"},
      {std::string(8, '\xff'), "the limit is"},
      {std::string("\x10\0\0\0\0\0\0\0{}", 10), "only 2 follow"},
      {file_of("", 0), "opening brace"},
      {file_of("[]", 0), "opening brace"},
      {file_of(" {}", 0), "opening brace"},
      {file_of("{", 0), "not valid JSON"},
      {file_of("{}x", 0), "not valid JSON"},
      {file_of("{}", 1), "holds 1"},
      {file_of("{\"\xff\":1}", 0), "not valid JSON"},
      {file_of(R"({"a":1})", 0), "a number is not allowed"},
      {file_of(R"({"a":null})", 0), "null"},
      {file_of(R"({"a":{}})", 0), "lacks"},
      {file_of(R"({"a":{"dtype":"F32","shape":[1]}})", 4), "lacks"},
      {file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1}})", 4), "unknown field"},
      {file_of(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4), "twice"},
      {file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}})", 4),
       "twice"},
      {file_of(R"({"a":{"dtype":"Q7","shape":[1],"data_offsets":[0,4]}})", 4), "unknown dtype"},
      {file_of(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4), "negative"},
      {file_of(R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4), "fraction"},
      {file_of(R"({"a":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}})", 4), "string"},
      {file_of(R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", 4), "an array"},
      {file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4), "1 numbers"},
      {file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8), "not where the one before ends"},
      {file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4), "needs 8 bytes"},
      {file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4), "not where"},
      {file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4),
       "not where"},
      {file_of(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0), "too large"},
      {file_of(R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})", 4), "a number is not allowed"},
      {file_of(R"({"__metadata__":{"a":1}})", 0), "a number is not allowed"},
      {file_of(R"({"__metadata__":{"a":"1","a":"2"}})", 0), "twice"},
      {file_of(std::string(100'000, '{'), 0), "not valid JSON"},
      {file_of("{\"a\":" + std::string(100'000, '['), 0), "an array"},
  };
  for (const auto& [file, expected] : cases)
    EXPECT_NE(cause_of(file).find(expected), std::string::npos) << file.substr(0, 120) << "\n -> " << cause_of(file);
  std::string many = "[";
  for (int i = 0; i < 100; ++i) many += "1,";
  EXPECT_NE(cause_of(file_of(R"({"a":{"dtype":"U8","shape":)" + many + "1]}}", 1)).find("more than 64 dimensions"), std::string::npos);
}

TEST(Sha256, PublishedVectors) {
  EXPECT_EQ(base::sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(base::sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(base::sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  base::Sha256 pieces;
  for (int i = 0; i < 1'000'000; ++i) pieces.update("a");
  EXPECT_EQ(pieces.hex(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
