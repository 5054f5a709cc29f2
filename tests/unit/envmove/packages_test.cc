#include "envmove/packages.h"
#include "envmove/rewrite.h"

#include <gtest/gtest.h>

#include "base/sha256.h"

using namespace phalanx;

namespace {

TEST(CondaRecord, FilesWithAPlaceholder) {
  auto record =
      envmove::parse_conda_record(R"({"name": "zlib", "version": "1.3", "build": "h1_0", "paths_data": {"paths_version": 1, "paths": [
    {"_path": "lib/pkgconfig/zlib.pc", "path_type": "hardlink", "file_mode": "text", "prefix_placeholder": "/opt/placehold",
     "sha256_in_prefix": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"},
    {"_path": "bin/z", "file_mode": "binary", "prefix_placeholder": "/opt/placehold"},
    {"_path": "include/zlib.h", "sha256": "x"}, {"_path": "../evil", "prefix_placeholder": "/p"}, 7, {"_path": 3}]}})");
  ASSERT_TRUE(record.ok()) << record.error().render();
  EXPECT_EQ(record->package.name, "zlib");
  ASSERT_EQ(record->paths.size(), 2u);
  EXPECT_FALSE(record->paths[0].managed.binary);
  EXPECT_EQ(record->paths[0].managed.sha256.size(), 64u);
  EXPECT_TRUE(record->paths[1].managed.binary);
  EXPECT_TRUE(record->paths[1].managed.sha256.empty());
}

TEST(CondaRecord, WhatIsNoneIsAnError) {
  for (const char* text : {"", "[]", "{}", "{\"name\": 3}", "{\"name\": \"x\"", "nan"})
    EXPECT_FALSE(envmove::parse_conda_record(text).ok()) << text;
  EXPECT_TRUE(envmove::parse_conda_record(R"({"name": "x", "paths_data": {"paths": {}}})").ok());
  EXPECT_FALSE(envmove::parse_conda_record(R"({"name": "x", "paths_data": {"paths": [{"_path": "a", "prefix_placeholder": ")" +
                                           std::string(5000, 'p') + "\"}]}}")
                   .ok());
}

TEST(Record, LinesOfCsv) {
  auto plain = envmove::parse_record_line("../../../bin/torchrun,sha256=abc,212");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->path, "../../../bin/torchrun");
  EXPECT_EQ(plain->hash, "sha256=abc");
  EXPECT_EQ(plain->size, "212");
  const std::string quoted = "\"a, \"\"b\"\".py\",sha256=x,1";
  auto strange = envmove::parse_record_line(quoted);
  ASSERT_TRUE(strange);
  EXPECT_EQ(strange->path, "a, \"b\".py");
  EXPECT_EQ(envmove::record_line(*strange), quoted);
  EXPECT_TRUE(envmove::parse_record_line("x/RECORD,,"));
  for (const char* line : {"", ",,", "a,b,c,d", "\"a", "\"a\"b,,", "a,\"x,y\",1"}) EXPECT_FALSE(envmove::parse_record_line(line)) << line;
}

// Of the empty string and of "abc": FIPS 180-4's digests in base64url.
TEST(Record, HashesAsPipWritesThem) {
  EXPECT_EQ(envmove::record_hash(base::sha256_hex("")), "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU");
  EXPECT_EQ(envmove::record_hash(base::sha256_hex("abc")), "sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0");
}

TEST(Record, PathsStayInTheEnvironment) {
  EXPECT_EQ(envmove::resolve("lib/python3.11/site-packages", "../../../bin/x"), "bin/x");
  EXPECT_EQ(envmove::resolve("lib/python3.11/site-packages", "torch/__init__.py"), "lib/python3.11/site-packages/torch/__init__.py");
  EXPECT_EQ(envmove::resolve("lib", "../../x"), "");
  EXPECT_EQ(envmove::resolve("lib", "/etc/passwd"), "");
}

TEST(DirectUrl, IsMovedAsTheUrlThatItIs) {
  const std::string file = "lib/python3.11/site-packages/tool-1.dist-info/direct_url.json";
  auto moved = [&](const std::string& url, const std::string& from, const std::string& to) {
    const std::string json = R"({"dir_info": {"editable": true}, "url": ")" + url + "\"}";
    const envmove::Rewritten now = envmove::rewrite(file, json, envmove::FileClass::kText, nullptr, {{from}, to});
    if (now.hits == 0) return std::string("as it was");
    const size_t at = now.data.find("file:");
    return now.data.substr(at, now.data.size() - at - 2);
  };
  EXPECT_EQ(moved("file:///a%20b/src/tool", "/a b", "/srv/env"), "file:///srv/env/src/tool");
  EXPECT_EQ(moved("file:///a/src/tool", "/a", "/my envs/\xc3\xa9"), "file:///my%20envs/%C3%A9/src/tool");
  EXPECT_EQ(moved("file:///a%20b/src", "/a", "/srv"), "as it was") << "/a is not /a b";
  EXPECT_EQ(moved("file:///a%20b", "/a b", "/c d"), "file:///c%20d");
  EXPECT_EQ(moved("https://example.com/a/src", "/a", "/srv"), "as it was");
  const auto kept = envmove::replace_urls(R"({"url": "file:///p%20q/env/src/tool"})", {{"/p q"}, "/env/src/p"}, "/p q/env");
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->hits, 0U) << "the environment lies in the project that is bundled";
}

TEST(DistInfo, NamesAreComparable) {
  auto package = envmove::package_of_dist_info("Flash_Attn-2.5.8.dist-info");
  ASSERT_TRUE(package);
  EXPECT_EQ(package->name, "flash-attn");
  EXPECT_EQ(package->version, "2.5.8");
  for (const char* name : {"x.dist-info", "-1.dist-info", "torch-2.1.egg-info", ""})
    EXPECT_FALSE(envmove::package_of_dist_info(name)) << name;
}

}  // namespace
