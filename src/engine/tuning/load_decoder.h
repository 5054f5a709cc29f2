// A model folder of Hugging Face's as a Decoder.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "engine/tuning/decoder/decoder.h"
#include "engine/tuning/hf_folder.h"

namespace phalanx::engine::tuning {

// How a decoder differs from its folder.
struct Changes {
  int64_t vocabulary = 0;           // rows of the embedding and of the head, if that is more than the folder has
  std::vector<int32_t> fresh = {};  // rows that mean nothing yet, besides those that the folder lacks
  uint64_t seed = 0;                // of what they begin with
  bool untied = false;              // a tied head becomes a matrix of its own, which begins as the embedding
};

// Parameters in fp32 whatever the file's type, without gradients. Error kConfig: config.json or the weights cannot be used.
base::Result<Decoder> load_decoder(const std::string& folder, const BytesDone& progress = {}, const Changes& changes = {});

// The same in two steps. First the decoder without values, whose memory nobody has touched yet; adapters may be added, and its parameters
// sharded. The headers of the files have been held against it.
struct HollowDecoder {
  Decoder decoder{nullptr};
  TensorFiles files;
  std::vector<NamedTensor> parameters;  // those of the files
  Changes changes{};
};
base::Result<HollowDecoder> make_decoder(const std::string& folder, const Changes& changes = {});
// Then the values, one tensor at a time. Every parameter is written once, in order, whatever happens, as ranks that share them need it:
// where a file cannot be read, or with `reads` false, as zeros.
base::Status fill_decoder(const HollowDecoder& hollow, bool reads, const BytesDone& progress = {});
// The same for a decoder most of whose own weights will not be trained: matrices that need no gradient, and that the files have in the type
// that products take (bf16 with `bf16`, else fp32), stay in the files, which must not change meanwhile.
base::Status map_decoder(const HollowDecoder& hollow, bool bf16, const BytesDone& progress = {});

}  // namespace phalanx::engine::tuning
