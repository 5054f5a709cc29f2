// Tokens that a tokenizer.json gets, as the tokenizers library adds them: each takes the next free id, or its own if the vocabulary has
// it, and is cut out of a text before anything else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tune/tokenizer/tokenizer.h"

namespace phalanx::tune {

struct ExtendedTokenizer {
  std::string json;               // tokenizer.json with the tokens; what it had before is as it was, byte for byte
  std::vector<AddedToken> added;  // those that it did not have as added tokens
  std::vector<int32_t> fresh;     // the ids that it did not have at all, ascending
};
// `special`: left out by decoders that skip special tokens. Error kConfig: the file cannot be used, or a token is empty or no UTF-8.
base::Result<ExtendedTokenizer> add_tokens(std::string_view json, const std::vector<std::string>& plain,
                                           const std::vector<std::string>& special);

}  // namespace phalanx::tune
