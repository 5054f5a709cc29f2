#include "diagnosis/signature.h"

namespace diagnosis {

std::vector<const Signature*> signatures() {
  std::vector<const Signature*> all;
  for (std::span<const Signature> rows :
       {gpu_signatures(), network_signatures(), infiniband_signatures(), nccl_signatures(), rendezvous_signatures(), launcher_signatures(),
        software_signatures(), data_signatures(), storage_signatures(), limits_signatures(), torch_signatures(), end_signatures(),
        cascade_signatures(), benign_signatures()})
    for (const Signature& row : rows) all.push_back(&row);
  return all;
}

const Signature& traceback_signature() {
  static constexpr Signature kRow{"RUN-EXCEPTION", Role::kRoot, "", "", "ValueError: too many values to unpack", ""};
  return kRow;
}

}  // namespace diagnosis
