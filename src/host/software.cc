#include "host/probe.h"

namespace host {

SoftwareFacts probe_software(const ProbeRequest&) { return {}; }

}  // namespace host
