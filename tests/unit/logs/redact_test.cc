#include "logs/redact.h"

#include <gtest/gtest.h>

namespace logs {
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

TEST(Redact, WhatIsNoneStays) {
  for (const char* text : {"step 12: 15300 tokens_per_s=15300.5 loss=2.3", "tokenizer: llama", "num_tokens: 4096", "max_token_length=12",
                           "pad_token_id: 0", "the token was late", "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
                           "10.0.0.1:29500", "a=b", "https://host:80/x", "sk-learn", "", "password", "token="})
    EXPECT_EQ(redact(text), text);
}

TEST(Redact, AnyBytes) {
  EXPECT_EQ(redact(std::string("\xff\x00\x80 token=\x00y", 12)).substr(0, 3), std::string("\xff\x00\x80", 3));
  std::string nasty = "token=\"";
  for (int i = 0; i < 10000; ++i) nasty += "\\\"://-----BEGIN ";
  EXPECT_LE(redact(nasty).size(), nasty.size() + 20);
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

}  // namespace
}  // namespace logs
