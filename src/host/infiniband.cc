#include "host/probe.h"

namespace host {

InfinibandFacts probe_infiniband(const ProbeRequest&) { return {}; }

}  // namespace host
