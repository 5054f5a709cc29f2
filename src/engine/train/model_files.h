// What lies beside the tensors of a merged model so that it is a model: config.json describes how it is computed, and phalanx_gpt.py
// (src/engine/model/phalanx_gpt.py) is that computation in Python. docs/formats/checkpoint.md lists the keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/checkpoint/merge.h"

namespace phalanx::engine::checkpoint {
class Reader;
}

namespace phalanx::engine::train {

// Nothing for a checkpoint whose model is not this program's GPT, such as that of a program on the library. `dtype`: of the merged
// floating- point tensors, as MergeOptions has it. Error (kConfig): the configuration in the checkpoint contradicts its tensors.
base::Result<std::vector<checkpoint::SmallFile>> model_files(const checkpoint::Reader& reader, std::string_view dtype);

extern const std::string_view kPhalanxGptPython;  // the text of phalanx_gpt.py

}  // namespace phalanx::engine::train
