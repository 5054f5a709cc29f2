// What several network and InfiniBand checks ask of a situation.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "doctor/situation.h"
#include "machine/network/nccl_interface.h"

namespace phalanx::doctor {

const machine::Interface* interface_named(const HostView& host, const std::string& name);
// The interface that has the address chosen for the host; null: none is chosen or it is not there.
const machine::Interface* chosen_interface(const HostView& host);
std::string network_of_chosen(const HostView& host);  // "192.168.20.0/24"; empty: not known

// A variable as the job would see it, else NCCL's conf file; empty: not set.
std::string job_setting(const Situation& s, size_t host, const std::string& name);
bool set_for_job(const Situation& s, const std::string& name);  // by the user, for this job
machine::NcclSettings nccl_settings_of(const Situation& s, size_t host);
// NCCL's bootstrap address there; nothing where the interfaces are not known.
std::optional<machine::SocketChoice> nccl_choice_of(const Situation& s, size_t host);
std::optional<machine::SocketChoice> gloo_choice_of(const Situation& s, size_t host);
bool uses_nccl(const Situation& s, size_t host);  // GPUs are there and wanted
bool uses_gloo(const Situation& s, size_t host);  // a torch job without GPUs

std::string names(const Situation& s, const std::vector<size_t>& hosts);  // "gpu01, gpu02"
std::string network_stack(const HostView& host);                          // "sudo " or, for root, nothing
// Any link between these two hosts that passed, or any that was tried.
bool link_passed(const Situation& s, size_t a, size_t b);
bool link_tried(const Situation& s, size_t a, size_t b);

// Each value that is not the most common one, with its hosts; with a tie of two hosts both are named. empty: all alike.
struct Odd {
  std::string value, usual;  // usual: of the others; with a tie of two: of the other
  std::vector<size_t> hosts, others;
};
std::vector<Odd> odd_ones(const Situation& s, const std::function<std::optional<std::string>(const HostView&)>& key);

}  // namespace phalanx::doctor
