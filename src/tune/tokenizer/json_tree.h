// The sections of tokenizer.json as a tree. nlohmann's plain type: base::Json keeps the order of keys and so looks for each of 151,643
// tokens among all the others.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tune/tokenizer/tokenizer.h"

namespace phalanx::tune {

using Tree = nlohmann::json;

// Errors kConfig.
base::Error bad_tokenizer(std::string why);
base::Error unsupported(std::string_view what, std::string_view value);

// Null, "" and false where a key is missing or of another type.
const Tree& at(const Tree& object, const char* key);
std::string text_at(const Tree& object, const char* key);
bool true_at(const Tree& object, const char* key);

// normalizer, pre_tokenizer and decoder.
base::Status read_stages(const Tree& tokenizer, TokenizerFile* file);

}  // namespace phalanx::tune
