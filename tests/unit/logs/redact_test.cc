#include "logs/redact.h"

#include <gtest/gtest.h>

#include <random>

namespace phalanx::logs {
namespace {

TEST(Redact, WhatIsASecretByItsName) {
  EXPECT_EQ(redact("HF_TOKEN=abc def"), "HF_TOKEN=[redacted] def");
  EXPECT_EQ(redact("export WANDB_API_KEY='a b'; x=1"), "export WANDB_API_KEY='[redacted]'; x=1");
  EXPECT_EQ(redact("{\"password\": \"hunter2\", \"user\": \"me\"}"), "{\"password\": \"[redacted]\", \"user\": \"me\"}");
  EXPECT_EQ(redact("{\"a\": \"{\\\"api_key\\\": \\\"k1\\\"}\"}"), "{\"a\": \"{\\\"api_key\\\": \\\"[redacted]\\\"}\"}");
  EXPECT_EQ(redact("train.py --token sesame --lr 3"), "train.py --token [redacted] --lr 3");
  EXPECT_EQ(redact("train.py --api-key=sesame --token --lr 3"), "train.py --api-key=[redacted] --token --lr 3");
  EXPECT_EQ(redact("Authorization: Bearer abc.def.ghi\nnext"), "Authorization: [redacted]\nnext");
  EXPECT_EQ(redact("'db_password': 'x\\'y', 'b': 1"), "'db_password': '[redacted]', 'b': 1");
  EXPECT_EQ(redact("AWS_SECRET_ACCESS_KEY: wJalr/x+y="), "AWS_SECRET_ACCESS_KEY: [redacted]");
}

TEST(Redact, WhatIsASecretByItsShape) {
  size_t found = 0;
  EXPECT_EQ(redact("got hf_abcdefghijklmnopqrstuvwxyz, ok", &found), "got [redacted], ok");
  EXPECT_EQ(redact("AKIAIOSFODNN7EXAMPLE0 and ghp_0123456789012345678901234567890123456", &found), "[redacted] and [redacted]");
  EXPECT_EQ(found, 3u);
  EXPECT_EQ(redact("git clone https://me:pw@host/x.git https://host/a:b@c"), "git clone https://[redacted]@host/x.git https://host/a:b@c");
  EXPECT_EQ(redact("wandb: key 0123456789abcdef0123456789abcdef01234567"), "wandb: key [redacted]");
  EXPECT_EQ(redact("commit 0123456789abcdef0123456789abcdef01234567"), "commit 0123456789abcdef0123456789abcdef01234567");
  EXPECT_EQ(redact("x\n-----BEGIN RSA PRIVATE KEY-----\nMII\nabc\n-----END RSA PRIVATE KEY-----\ny"), "x\n[redacted]\ny");
  EXPECT_EQ(redact("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxIn0.sig-x z"), "[redacted] z");
}

// Everything that came through a report in an audit, and its relatives.
TEST(Redact, WhatCameThrough) {
  const std::string rest = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
  for (const char* start :
       {"hf_", "nvapi-", "ghu_", "gho_", "ghr_", "gsk_", "pypi-", "sk-", "glpat-", "npm_", "xai-", "dckr_pat_", "hvs.", "ya29."}) {
    std::string token = start + rest;
    for (const std::string& around : {token, "\x1b[32m" + token + "\x1b[0m", "got " + token + ", ok", "\"" + token + "\"", "key-" + token,
                                      "\x1b[38;5;208m" + token, start + std::string("\x1b[1m") + rest, "x=" + token + ";y"})
      EXPECT_EQ(redact(around).find(rest.substr(0, 8)), std::string::npos) << around;
  }
  for (const char* line :
       {"DB_PASS=@", "MYSQL_PWD=@", "AccountKey=@==;EndpointSuffix=x", "Server=h;Uid=sa;Pwd=@;", "https://@@dev.azure.com/org/_git/x",
        "https://host/x?X-Amz-Signature=@&b=1", "https://host/x?sv=1&sig=@%3D&se=2", "AUTH_TOKENS=@", "GITLAB_TOKENS: @", "dbPass: \"@\"",
        "REDIS_AUTH=@", "HF_KEY=@", "https://me:p@@@host/x", "postgres://@:pw@host/db", "\x1b[1mHF_TOKEN\x1b[0m=\x1b[33m@\x1b[0m",
        "{\"auth_tokens\": \"@\"}", "tokens: [\"a\", \"@\"]", "ssh://me:@@host/x"}) {
    const std::string secret = "sEcRet0Value9ofMine";
    std::string text = line;
    text.replace(text.find('@'), 1, secret);
    EXPECT_EQ(redact(text).find("sEcRet0"), std::string::npos) << text << " became " << redact(text);
    EXPECT_EQ(redact(text).find("9ofMine"), std::string::npos) << text << " became " << redact(text);
  }
}

TEST(Redact, WhatIsNoneStays) {
  for (const char* text : {"step 12: 15300 tokens_per_s=15300.5 loss=2.3",
                           "tokenizer: llama",
                           "num_tokens: 4096",
                           "max_token_length=12",
                           "pad_token_id: 0",
                           "the token was late",
                           "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
                           "tokens: 4096",
                           "tokens=12k, 3 of 4",
                           "{\"tokens\": 1.5e9}",
                           "PWD=/home/me",
                           "bypass=x",
                           "design: x",
                           "forward_pass=0.5",
                           "auth: true",
                           "git clone ssh://me@host/x",
                           "https://git@host/x",
                           "sort_key=name",
                           "signature: (x, y)",
                           "10.0.0.1:29500",
                           "a=b",
                           "https://host:80/x",
                           "sk-learn",
                           "",
                           "password",
                           "token="})
    EXPECT_EQ(redact(text), text);
}

// The engine's line of a batch in Chinese has "1 pass = 每步": a count. A password may stand in the same place.
TEST(Redact, ACountOfPassesIsNoPassword) {
  EXPECT_EQ(redact("批：4 个序列 × 2 个 rank × 1 pass = 每步 8"), "批：4 个序列 × 2 个 rank × 1 pass = 每步 8");
  EXPECT_EQ(redact("4 sequences × 1 pass = 8 per step"), "4 sequences × 1 pass = 8 per step");
  EXPECT_EQ(redact("1 pass = hunter2每步"), "1 pass = [redacted]");
  EXPECT_EQ(redact("user pass = 每步"), "user pass = [redacted]");
  EXPECT_EQ(redact("1 pass: 每步"), "1 pass: [redacted]");
  EXPECT_EQ(redact("1 db_pass = 每步"), "1 db_pass = [redacted]");
  EXPECT_EQ(redact("1 password = 每步"), "1 password = [redacted]");
}

TEST(Redact, AnyBytes) {
  EXPECT_EQ(redact(std::string("\xff\x00\x80 token=\x00y", 12)).substr(0, 3), std::string("\xff\x00\x80", 3));
  std::string nasty = "token=\"";
  for (int i = 0; i < 10000; ++i) nasty += "\\\"://-----BEGIN ";
  EXPECT_LE(redact(nasty).size(), nasty.size() + 20);
}

// Whatever stands around it.
TEST(Redact, ATokenAnywhere) {
  const char* parts[] = {"token",
                         "=",
                         "\"",
                         "\\",
                         "hf_",
                         "aB3",
                         "\x1b[3",
                         "m",
                         "://",
                         "@",
                         ":",
                         " ",
                         "\n",
                         "-----BEGIN ",
                         "PRIVATE KEY-----",
                         "PASS",
                         ";",
                         "--",
                         "tokens",
                         "7",
                         "\x1b]",
                         "\a",
                         "Bearer ",
                         "-----END ",
                         "\xff",
                         "eyJ0123456789012345678901234567890"};
  std::mt19937 random(11);
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (size_t n = random() % 24; n > 0; --n) text += parts[random() % std::size(parts)];
    std::string around = text + " hf_abcdefghijklmnopqrst7UVWXYZ " + text;
    std::string once = redact(around);
    ASSERT_EQ(once.find('\x1b'), std::string::npos);
    ASSERT_EQ(redact(around).find("abcdefghijklmnopqrst7"), std::string::npos) << around;
    ASSERT_LE(redact(text).size(), 12 * (text.size() + 1));
  }
}

TEST(Redact, JsonBelowAKey) {
  base::Json json = {{"auth_tokens", {"aaa", 4}}, {"tokens", 4096}, {"credentials", {{"user", "me"}}}, {"counts", {{"tokens", "12k"}}}};
  EXPECT_EQ(base::to_text(redact_json(json)),
            R"({"auth_tokens":["[redacted]",4],"tokens":4096,"credentials":{"user":"[redacted]"},"counts":{"tokens":"12k"}})");
}

TEST(Redact, JsonByKeyAndByString) {
  base::Json json = {{"command", {"train.py", "--hub-token", "sesame", "--lr", "3", "--secret=x"}},
                     {"api_key", "k"},
                     {"nested", {{"url", "http://u:p@h/"}, {"n", 3}}},
                     {"tokens_per_s", 15.5}};
  size_t found = 0;
  base::Json out = redact_json(json, &found);
  EXPECT_EQ(base::to_text(out),
            R"({"command":["train.py","--hub-token","[redacted]","--lr","3","--secret=[redacted]"],"api_key":"[redacted]",)"
            R"("nested":{"url":"http://[redacted]@h/","n":3},"tokens_per_s":15.5})");
  EXPECT_EQ(found, 4u);
}

// As a program prints its own environment: NAME 'value'.
TEST(Redact, AVariableBesideItsQuotedValue) {
  EXPECT_EQ(redact("WANDB_API_KEY 'topsecret'"), "WANDB_API_KEY '[redacted]'");
  EXPECT_EQ(redact("HF_TOKEN \"abc\" read"), "HF_TOKEN \"[redacted]\" read");
  EXPECT_EQ(redact("the token 'eos' is 2"), "the token 'eos' is 2");
  EXPECT_EQ(redact("HF_TOKEN is set"), "HF_TOKEN is set");
}

}  // namespace
}  // namespace phalanx::logs
