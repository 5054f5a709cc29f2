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

}  // namespace phalanx::engine::tuning
