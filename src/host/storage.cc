#include "host/probe.h"

namespace host {

StorageFacts probe_storage(const ProbeRequest&, const std::vector<NamedPath>&, std::vector<Gap>&) { return {}; }

}  // namespace host
