// Secrets taken out of text that is to be given away (`phalanx report`). Pure.
//
// Taken out, each replaced by "[redacted]":
//   - what follows NAME= or "NAME": where NAME speaks of a secret (TOKEN, SECRET, PASSWORD, PASSWD, API_KEY, ACCESS_KEY, ACCOUNTKEY,
//     PRIVATE_KEY, CREDENTIAL, COOKIE; the parts PASS, PWD, AUTH, SIG, SIGNATURE; any case), up to the end of the value; also --token VALUE
//     and `Authorization: Bearer VALUE`, and NAME 'VALUE' where NAME is written like a variable's. After TOKENS, PASS, PWD, AUTH and …_KEY
//     a number, a switch (true, off) or a path stays: they count and name folders more often than they keep secrets
//   - the user part of a URL: https://user:pass@host, https://token@host; not git@, and no login name of ssh://
//   - tokens known by their shape: Hugging Face hf_…, GitHub gh?_… and github_pat_…, GitLab gl…-…, OpenAI sk-…, NVIDIA nvapi-…, Groq gsk_…,
//     PyPI pypi-…, Slack xox?-…, AWS AKIA…/ASIA…, Google AIza… and more (kShapes), Weights & Biases keys (wandb_v1_…; 40 hex digits after
//     "wandb" on the line), JSON web tokens, and PEM private keys
// Escape sequences go: a colour's last letter would be part of the word behind it. Else the shape of a line stays. It cannot know a
// secret that looks like any other word; the page and the archive say so.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/json.h"

namespace phalanx::logs {

inline constexpr std::string_view kRedacted = "[redacted]";

// found: how many were replaced, added up; may be null.
std::string redact(std::string_view text, size_t* found = nullptr);
// A variable of this name and value is one that redact() would take out.
bool keeps_secret(std::string_view name, std::string_view value);
// Every string of the document; values under keys that speak of a secret as a whole.
base::Json redact_json(const base::Json& json, size_t* found = nullptr);

}  // namespace phalanx::logs
