// A model folder of Hugging Face's as a Decoder.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "engine/tuning/decoder/decoder.h"
#include "engine/tuning/hf_folder.h"

namespace phalanx::engine::tuning {

// Parameters in fp32 whatever the file's type, without gradients. Error kConfig: config.json or the weights cannot be used.
base::Result<Decoder> load_decoder(const std::string& folder, const BytesDone& progress = {});

// The same in two steps. First the decoder without values, whose memory nobody has touched yet; adapters may be added, and its parameters
// sharded. The headers of the files have been held against it.
struct HollowDecoder {
  Decoder decoder{nullptr};
  TensorFiles files;
  std::vector<NamedTensor> parameters;  // those of the files
};
base::Result<HollowDecoder> make_decoder(const std::string& folder);
// Then the values, one tensor at a time. Every parameter is written once, in order, whatever happens, as ranks that share them need it:
// where a file cannot be read, or with `reads` false, as zeros.
base::Status fill_decoder(const HollowDecoder& hollow, bool reads, const BytesDone& progress = {});
// The same for a decoder whose own weights will not be trained: matrices that the files have in the type that products take (bf16 with
// `bf16`, else fp32) stay in the files, which must not change meanwhile.
base::Status map_decoder(const HollowDecoder& hollow, bool bf16, const BytesDone& progress = {});

}  // namespace phalanx::engine::tuning
