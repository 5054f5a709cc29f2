// The signatures of logs (codes/signature.h), and the one that is no data.
#pragma once

#include "codes/signature.h"

namespace phalanx::diagnosis {

using codes::Role;
using codes::Signature;

// The last line of a Python traceback that no row knows: its literal is empty, the scanner finds it by the lines above.
const Signature& traceback_signature();
// A warning of NCCL that no row knows.
const Signature& warning_signature();

}  // namespace phalanx::diagnosis
