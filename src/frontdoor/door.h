// What the doors share while they translate one line: where to look things up, and where decisions and findings go.
#pragma once

#include <string>
#include <string_view>

#include "frontdoor/frontdoor.h"

namespace phalanx::frontdoor {

struct Door {
  const Line& line;
  const Surroundings& around;
  Translation out;

  void decide(std::string from, std::string to, words::Message why = {}) { out.decisions.push_back({std::move(from), std::move(to), why}); }
  void warn(words::Message text, words::Message advice = {}) { out.findings.push_back({std::move(text), std::move(advice)}); }
  // Of the prefix, else of this process.
  std::optional<std::string> variable(const std::string& name) const;
  bool in_prefix(std::string_view name) const;
  void set(std::string name, std::string value);  // for the ranks; a name set before gets the new value

  // "python": the one that lies beside a launcher typed with its path, else python, else python3.
  std::string python(std::string_view launcher) const;
};

words::Message message_of(const words::Text& text);
std::string typed_text(const GivenFlag& given);  // "--nnodes 2"

// The value as a whole number in [min, max]. Error kUsage: names the option.
base::Result<int> number_of(const GivenFlag& given, int min, int max);

// Says why options that mean nothing here mean nothing, and refuses those that cannot be served.
base::Status answer_flags(Door& door, std::string_view peer, const ReadFlags& read);

// The same for variables_of(peer), in front of the line and of this process.
base::Status answer_variables(Door& door, Peer peer);
bool is_answered(Peer peer, std::string_view name);  // it means nothing here

// The value of an option or variable that names the rendezvous. Loopback, placeholders and unknown values are not passed on.
void take_master_address(Door& door, const std::string& from, const std::string& value, bool known);
// torchrun's choice of what goes to files and to the terminal; each may be null.
base::Status take_streams(Door& door, const GivenFlag* redirects, const GivenFlag* tee, const GivenFlag* filter);
void take_log_folder(Door& door, const GivenFlag* given);  // torchrun's --log-dir; may be null
base::Status take_master_port(Door& door, const GivenFlag& given);
// The number of this machine among the nodes. Empty, -1 (DeepSpeed's "not given") and a variable nobody knows are no number.
base::Status take_node_rank(Door& door, const GivenFlag& given);

// Command of a script that Python starts: {python, script, args…}, {python, -m, module, args…}, {program, args…}.
enum class Start { kScript, kModule, kProgram };
std::vector<std::string> command_of(Start start, const std::string& python, std::vector<std::string> rest);
// `--local_rank=${local_rank}` behind the script, as torch.distributed.launch and DeepSpeed add it.
void add_local_rank(Translation& out, Start start);

// The file that the framework of the command writes its figures to, where its configuration says so: PHALANX_PROGRESS_FILE.
void find_progress_file(Door& door);

// What all doors do after the peer's own: variables in front of the line, counts that contradict each other.
void finish(Door& door, Peer peer);

// The doors themselves. `words`: the peer's own, without the name of the launcher.
base::Status torchrun_door(Door& door, Peer peer, const std::string& launcher, std::span<const std::string> words);
base::Status accelerate_door(Door& door, const std::string& launcher, std::span<const std::string> words);
base::Status deepspeed_door(Door& door, const std::string& launcher, std::span<const std::string> words);
base::Status llamafactory_door(Door& door, const std::string& launcher, std::span<const std::string> words);
// For `python`: what a pod of a PyTorchJob has in its environment, for a script that reads it, is as if it stood in front of the line.
void add_from_pod(Line& line, const Surroundings& around);
base::Status python_door(Door& door, std::span<const std::string> words);

}  // namespace phalanx::frontdoor
