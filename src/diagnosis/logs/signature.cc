#include "diagnosis/logs/signature.h"

namespace phalanx::diagnosis {

const Signature& traceback_signature() {
  static constexpr Signature kRow{"RUN-EXCEPTION", Role::kRoot, "", "", "ValueError: too many values to unpack", ""};
  return kRow;
}

}  // namespace phalanx::diagnosis
