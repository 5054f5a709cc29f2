// Secrets taken out of text that is to be given away (`phalanx report`). Pure.
//
// Taken out, each replaced by "[redacted]":
//   - what follows NAME= or "NAME": where NAME speaks of a secret (TOKEN, SECRET, PASSWORD, PASSWD, API_KEY, ACCESS_KEY, PRIVATE_KEY,
//     CREDENTIAL, AUTH, COOKIE; any case), up to the end of the value; also --token VALUE and `Authorization: Bearer VALUE`
//   - the user part of a URL with a password: https://user:pass@host
//   - tokens known by their shape: Hugging Face hf_…, GitHub ghp_… and github_pat_…, OpenAI sk-…, Slack xox?-…, AWS AKIA…/ASIA…, Google
//     AIza…, GitLab glpat-…, Weights & Biases keys (40 hex digits after "wandb" on the line), JSON web tokens, and PEM private keys
// The shape of a line stays: nothing is removed but the secret. It cannot know a secret that looks like any other word; the page and
// the archive say so.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/json.h"

namespace logs {

inline constexpr std::string_view kRedacted = "[redacted]";

// found: how many were replaced, added up; may be null.
std::string redact(std::string_view text, size_t* found = nullptr);
// Every string of the document; values under keys that speak of a secret as a whole.
base::Json redact_json(const base::Json& json, size_t* found = nullptr);

}  // namespace logs
