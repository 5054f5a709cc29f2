// Which part of which software a message comes from, where no signature knows what it says: by the source file that NCCL and c10d name, or
// by the package in which an exception was raised. Pure.
#pragma once

#include <string_view>

#include "base/language.h"
#include "codes/catalogue.h"
#include "doctor/finding.h"

namespace phalanx::diagnosis {

// NCCL's "gpu01:90:401 [0] FILE:LINE NCCL WARN …" → "NCCL's InfiniBand transport"; c10d's "[E FILE:LINE] …" → "PyTorch's rendezvous
// connections". Empty: the line names no file that is known.
doctor::Words family_of_line(std::string_view line);

// "torch/distributed/fsdp/api.py" → "PyTorch's FSDP": the path below site-packages. Empty: none of those that are known.
doctor::Words family_of_module(std::string_view path);

// The part that prints the message; never empty.
doctor::Words family_of_message(const codes::KnownMessage& message);

}  // namespace phalanx::diagnosis
