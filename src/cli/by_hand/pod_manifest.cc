#include "cli/by_hand/pod_manifest.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::cli {
namespace {

constexpr size_t kMostNameBytes = 52;  // of a label's 63, with room for "-65535" behind it
constexpr const char* kDefaultName = "phalanx";

base::Error refused(std::string message, std::string hint) {
  return base::fail(base::ErrorKind::kUsage, std::move(message)).with_hint(std::move(hint));
}

// A name in DNS: RFC 1035, as Kubernetes asks it of a Service.
bool is_label(std::string_view name) {
  auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  return !name.empty() && name[0] >= 'a' && name[0] <= 'z' && name.back() != '-' && std::all_of(name.begin(), name.end(), plain);
}

// JSON's strings are YAML's.
std::string yaml_text(const std::string& text) { return base::Json(text).dump(-1, ' ', false, base::Json::error_handler_t::replace); }

// Kubernetes replaces $(NAME) in a command, and reads $$ as $.
std::string word(const std::string& text) { return yaml_text(base::replace_all(text, "$", "$$")); }

struct Volume {
  std::string claim, path;
};
base::Result<Volume> volume_of(const std::string& text) {
  const size_t colon = text.find(':');
  Volume out{text.substr(0, colon), colon == std::string::npos ? "" : text.substr(colon + 1)};
  auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.'; };
  if (out.claim.empty() || out.claim.size() > 253 || !std::all_of(out.claim.begin(), out.claim.end(), plain) ||
      !out.path.starts_with('/') || out.path.find(':') != std::string::npos)
    return refused(fmt::format("--volume {}: not CLAIM:PATH", base::quote(text)),
                   "write the name of a PersistentVolumeClaim and a directory of the pod: --volume data:/data");
  return out;
}

bool covers(const std::string& folder, const std::string& path) {
  return path == folder || folder == "/" || (path.starts_with(folder) && path[folder.size()] == '/');
}

bool has(const std::vector<std::string>& words, std::string_view option) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& one) {
    return one == option || (one.starts_with(option) && one.size() > option.size() && one[option.size()] == '=');
  });
}

// The options that the pods need come first; what the user has typed behind them stays.
std::vector<std::string> command_of(const Submission& submission, const std::string& name) {
  std::vector<std::string> words = run_line(submission);
  std::vector<std::string> options;
  const std::vector<std::string> typed(words.begin(), std::find(words.begin(), words.end(), "--"));
  auto add = [&](const char* option, std::string value) {
    if (!has(typed, option)) options.insert(options.end(), {option, std::move(value)});
  };
  if (submission.nodes > 1) {
    add("--nnodes", std::to_string(submission.nodes));
    add("--master-addr", fmt::format("{0}-0.{0}", name));
  }
  if (submission.gpus_per_node > 0) add("--nproc-per-node", std::to_string(submission.gpus_per_node));
  words.insert(words.begin() + 1, options.begin(), options.end());
  words.insert(words.begin(), "phalanx");
  return words;
}

constexpr std::string_view kManifest = R"(apiVersion: v1
kind: Service
metadata:
  name: {name}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    phalanx-job: {name}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
spec:
  completionMode: Indexed
  completions: {nodes}
  parallelism: {nodes}
  backoffLimit: 0
  template:
    metadata:
      labels:
        phalanx-job: {name}
    spec:
      restartPolicy: Never
      subdomain: {name}
      containers:
      - name: ranks
        image: {image}
)";

constexpr std::string_view kToken = R"(        env:
        - name: PHALANX_TOKEN
          valueFrom:
            secretKeyRef:
              name: phalanx-token
              key: token
)";

}  // namespace

base::Result<std::string> pod_manifest(const Submission& submission) {
  if (submission.requeue || !submission.options.empty())
    return refused(fmt::format("--image and {} cannot be combined: one is for Kubernetes, the other for Slurm",
                               submission.requeue ? "--requeue" : "--sbatch"),
                   "keep one of them");
  const std::string name = submission.name.empty() ? kDefaultName : submission.name;
  if (!is_label(name) || name.size() > kMostNameBytes)
    return refused(
        base::counted("--name {}: Kubernetes names have lower-case letters, digits and '-', begin with a letter, and have at most {} bytes",
                      base::quote(name), kMostNameBytes),
        "--name llama-7b");
  std::vector<Volume> volumes;
  for (const std::string& text : submission.volumes) {
    TRY_ASSIGN(Volume volume, volume_of(text));
    volumes.push_back(std::move(volume));
  }
  std::string out = fmt::format(fmt::runtime(kManifest), fmt::arg("name", name), fmt::arg("nodes", submission.nodes),
                                fmt::arg("image", yaml_text(submission.image)));
  out += "        command:\n";
  for (const std::string& one : command_of(submission, name)) out += "        - " + word(one) + "\n";
  if (std::any_of(volumes.begin(), volumes.end(), [&](const Volume& volume) { return covers(volume.path, submission.directory); }))
    out += "        workingDir: " + yaml_text(submission.directory) + "\n";
  if (submission.nodes > 1) out += kToken;
  if (submission.gpus_per_node > 0)
    out += fmt::format("        resources:\n          limits:\n            nvidia.com/gpu: {}\n", submission.gpus_per_node);
  out += "        volumeMounts:\n        - name: shm\n          mountPath: /dev/shm\n";
  for (size_t i = 0; i < volumes.size(); ++i)
    out += fmt::format("        - name: volume-{}\n          mountPath: {}\n", i, yaml_text(volumes[i].path));
  out += "      volumes:\n      - name: shm\n        emptyDir:\n          medium: Memory\n";
  for (size_t i = 0; i < volumes.size(); ++i)
    out += fmt::format("      - name: volume-{}\n        persistentVolumeClaim:\n          claimName: {}\n", i, volumes[i].claim);
  return out;
}

}  // namespace phalanx::cli
