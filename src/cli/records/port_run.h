// Who holds the port of --master-port, where it is a run of this user.
#pragma once

#include <string>

namespace phalanx::cli {

// The id of a run of `folder` that is ours, has not ended, and has its store on that port of a host of that name: what `phalanx stop`
// takes. Empty: none is known. Reads run.json of every run there; what cannot be read is passed over.
std::string run_on_port(const std::string& folder, const std::string& host, int port);

}  // namespace phalanx::cli
