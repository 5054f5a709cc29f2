// `phalanx-train generate`: text that a model continues, or its answer in the form of its chat template. `phalanx-train chat`: the same in
// turn with a person at a terminal.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/finetune/talker.h"

namespace phalanx::engine::finetune {

// Prints the answer to stdout while it comes, and which template was used to stderr. Errors as Talker's.
base::Status generate_text(const ModelRequest& request, const std::string& prompt, const tuning::GenerateOptions& options);

// Reads lines from stdin until it ends or /exit: each is a message, which is answered with all before it in mind. /clear forgets them,
// /system TEXT sets the system text. SIGINT ends an answer; between answers it ends the conversation.
base::Status chat(const ModelRequest& request, const tuning::GenerateOptions& options);

}  // namespace phalanx::engine::finetune
