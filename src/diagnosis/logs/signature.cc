#include "diagnosis/logs/signature.h"

namespace phalanx::diagnosis {

const Signature& traceback_signature() {
  static constexpr Signature kRow{"RUN-EXCEPTION", Role::kRoot, "", "", "ValueError: too many values to unpack"};
  return kRow;
}

const Signature& warning_signature() {
  static constexpr Signature kRow{"NCCL-SYSTEM-ERROR", Role::kSymptom, "", "", "gpu01:90:401 [0] init.cc:90 NCCL WARN x"};
  return kRow;
}

}  // namespace phalanx::diagnosis
