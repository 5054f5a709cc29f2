// What `phalanx submit --image` writes: parsed as YAML, and each field held against what the Kubernetes API documents of it. No cluster
// has read it here.
#include "cli/by_hand/pod_manifest.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/text.h"
#include "base/yaml.h"

namespace phalanx::cli {
namespace {

Submission submission(std::vector<std::string> command = {"python", "train.py"}) {
  Submission out;
  out.nodes = 4;
  out.image = "registry.local:5000/llm:3";
  out.command = std::move(command);
  out.program = "/opt/phalanx";
  out.directory = "/code/llm";
  return out;
}

// Paths of fields, [] for an entry of a list, and their types: batch/v1 JobSpec, v1 ServiceSpec, PodSpec, Container, EnvVar, VolumeMount
// and Volume of api/openapi-spec/v3 (api__v1, apis__batch__v1); compared with kubernetes/api (10b39a39) and with the whole JobSpec in the
// CRD of JobSet (08dfbdfd). "label": DNS label (RFC 1035); "map": any keys with text.
const std::map<std::string, std::string>& schema() {
  static const std::map<std::string, std::string> kFields = {
      {"apiVersion", "text"},
      {"kind", "text"},
      {"metadata.name", "label"},
      {"Service.spec.clusterIP", "text"},
      {"Service.spec.publishNotReadyAddresses", "boolean"},
      {"Service.spec.selector", "map"},
      {"Job.spec.completionMode", "text"},
      {"Job.spec.completions", "integer"},
      {"Job.spec.parallelism", "integer"},
      {"Job.spec.backoffLimit", "integer"},
      {"Job.spec.template.metadata.labels", "map"},
      {"Job.spec.template.spec.restartPolicy", "text"},
      {"Job.spec.template.spec.subdomain", "label"},
      {"Job.spec.template.spec.containers[].name", "label"},
      {"Job.spec.template.spec.containers[].image", "text"},
      {"Job.spec.template.spec.containers[].command[]", "text"},
      {"Job.spec.template.spec.containers[].workingDir", "text"},
      {"Job.spec.template.spec.containers[].env[].name", "text"},
      {"Job.spec.template.spec.containers[].env[].valueFrom.secretKeyRef.name", "text"},
      {"Job.spec.template.spec.containers[].env[].valueFrom.secretKeyRef.key", "text"},
      {"Job.spec.template.spec.containers[].resources.limits", "quantities"},
      {"Job.spec.template.spec.containers[].volumeMounts[].name", "label"},
      {"Job.spec.template.spec.containers[].volumeMounts[].mountPath", "text"},
      {"Job.spec.template.spec.volumes[].name", "label"},
      {"Job.spec.template.spec.volumes[].emptyDir.medium", "text"},
      {"Job.spec.template.spec.volumes[].persistentVolumeClaim.claimName", "text"},
  };
  return kFields;
}

bool is_label(const std::string& text) {
  return !text.empty() && text.size() <= 63 && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos &&
         text[0] >= 'a' && text.back() != '-';
}

bool fits(const std::string& type, const base::Json& value) {
  if (type == "text") return value.is_string();
  if (type == "label") return value.is_string() && is_label(value.get<std::string>());
  if (type == "integer") return value.is_number_integer();
  if (type == "boolean") return value.is_boolean();
  if (!value.is_object() || value.empty()) return false;
  for (const auto& [key, one] : value.items())
    if (type == "map" ? !one.is_string() : !one.is_number_integer() && !one.is_string()) return false;
  return true;
}

void walk(const std::string& kind, const std::string& path, const base::Json& value) {
  const auto& fields = schema();
  for (const std::string& name : {path, kind + "." + path})
    if (auto found = fields.find(name); found != fields.end()) {
      EXPECT_TRUE(fits(found->second, value)) << kind << " " << path << ": " << value.dump();
      return;
    }
  ASSERT_TRUE(value.is_structured() && !value.empty()) << "the API has no field " << kind << " " << path;
  for (const auto& [key, one] : value.items()) walk(kind, value.is_array() ? path + "[]" : path.empty() ? key : path + "." + key, one);
}

struct Parsed {
  base::Json service, job;
  const base::Json& pod() const { return job["spec"]["template"]["spec"]; }
  const base::Json& container() const { return pod()["containers"][0]; }
  std::vector<std::string> command() const { return container()["command"].get<std::vector<std::string>>(); }
};
Parsed parsed(const Submission& wanted) {
  base::Result<std::string> text = pod_manifest(wanted);
  EXPECT_TRUE(text.ok()) << text.error().message;
  if (!text.ok()) return {};
  const size_t cut = text->find("---\n");
  Parsed out;
  for (auto [part, value] : {std::pair(text->substr(0, cut), &out.service), std::pair(text->substr(cut + 4), &out.job)}) {
    base::Result<base::Yaml> yaml = base::parse_yaml(part);
    EXPECT_TRUE(yaml.ok() && yaml->twice.empty() && !yaml->more_documents) << part;
    if (!yaml.ok()) return {};
    *value = yaml->value;
    walk((*value)["kind"].get<std::string>(), "", *value);
  }
  return out;
}

TEST(PodManifest, EveryFieldIsOneOfTheApi) {
  Submission job = submission();
  job.gpus_per_node = 8;
  job.name = "llm";
  job.volumes = {"code:/code", "data.v2:/data"};
  const Parsed all = parsed(job);
  EXPECT_EQ(all.service["apiVersion"], "v1");
  EXPECT_EQ(all.job["apiVersion"], "batch/v1");
  const base::Json& spec = all.job["spec"];
  EXPECT_EQ(spec["completionMode"], "Indexed");
  EXPECT_EQ(spec["completions"], 4);
  EXPECT_EQ(spec["parallelism"], 4);  // all at once, or they would wait for each other
  EXPECT_EQ(spec["backoffLimit"], 0);
  EXPECT_EQ(all.pod()["restartPolicy"], "Never");
  // The name of the first pod leads to it: the subdomain is the headless service that selects the pods.
  EXPECT_EQ(all.service["spec"]["clusterIP"], "None");
  EXPECT_EQ(all.pod()["subdomain"], all.service["metadata"]["name"]);
  EXPECT_EQ(all.service["spec"]["selector"], spec["template"]["metadata"]["labels"]);
  EXPECT_EQ(all.command(), (std::vector<std::string>{"phalanx", "run", "--nnodes", "4", "--master-addr", "llm-0.llm", "--nproc-per-node",
                                                     "8", "--", "python", "train.py"}));
  EXPECT_EQ(all.container()["workingDir"], "/code/llm");
  EXPECT_EQ(all.container()["resources"]["limits"]["nvidia.com/gpu"], 8);
  // Each mount has its volume.
  std::set<std::string> mounted, volumes;
  for (const base::Json& one : all.container()["volumeMounts"]) mounted.insert(one["name"].get<std::string>());
  for (const base::Json& one : all.pod()["volumes"]) volumes.insert(one["name"].get<std::string>());
  EXPECT_EQ(mounted, volumes);
  EXPECT_EQ(all.pod()["volumes"][2]["persistentVolumeClaim"]["claimName"], "data.v2");
}

TEST(PodManifest, OnePodNeedsNeitherTokenNorAddress) {
  Submission job = submission();
  job.nodes = 1;
  const Parsed one = parsed(job);
  EXPECT_EQ(one.command(), (std::vector<std::string>{"phalanx", "run", "--", "python", "train.py"}));
  EXPECT_FALSE(one.container().contains("env"));
  EXPECT_FALSE(one.container().contains("workingDir"));
}

TEST(PodManifest, ALineOfPhalanxKeepsItsOptions) {
  const Parsed typed =
      parsed(submission({"phalanx", "run", "--nproc-per-node=2", "--master-addr", "a.b", "--", "python", "--nnodes", "x.py"}));
  EXPECT_EQ(typed.command(), (std::vector<std::string>{"phalanx", "run", "--nnodes", "4", "--nproc-per-node=2", "--master-addr", "a.b",
                                                       "--", "python", "--nnodes", "x.py"}));
}

// A word arrives as it was typed: YAML's syntax is quoted, and Kubernetes' $ doubled, which it undoes.
TEST(PodManifest, WordsArriveAsTheyWereTyped) {
  const std::vector<std::string> words = {"sh",       "-c",   "echo $(HOME) $$ ${A}: \"x\" # 'y'\n- z", "{}", "yes", "", "1e3",
                                          "\xc3\xa4", "&a *b"};
  std::vector<std::string> command = parsed(submission(words)).command();
  ASSERT_GE(command.size(), words.size());
  command.erase(command.begin(), command.end() - static_cast<ptrdiff_t>(words.size()));
  for (size_t i = 0; i < words.size(); ++i) {
    EXPECT_EQ(base::replace_all(command[i], "$$", "$"), words[i]);
    EXPECT_EQ(base::replace_all(words[i], "$", "$$"), command[i]);
  }
}

TEST(PodManifest, WhatKubernetesWouldRefuseIsRefused) {
  auto refused = [](auto change) {
    Submission job = submission();
    change(job);
    base::Result<std::string> text = pod_manifest(job);
    EXPECT_FALSE(text.ok());
    return text.ok() ? "" : text.error().message;
  };
  for (const char* name : {"Llama", "7b", "a.b", "a-", "a_b"})
    EXPECT_NE(refused([&](Submission& job) { job.name = name; }).find("Kubernetes names"), std::string::npos) << name;
  refused([](Submission& job) { job.name = std::string(53, 'a'); });
  for (const char* volume : {"", "data", "data:", ":/data", "data:relative", "Data:/data", "data:/a:/b"})
    EXPECT_NE(refused([&](Submission& job) { job.volumes = {volume}; }).find("not CLAIM:PATH"), std::string::npos) << volume;
  EXPECT_NE(refused([](Submission& job) { job.requeue = true; }).find("the other for Slurm"), std::string::npos);
  EXPECT_NE(refused([](Submission& job) { job.options = {"time=1"}; }).find("the other for Slurm"), std::string::npos);
  Submission slurm = submission();
  slurm.image.clear();
  slurm.volumes = {"a:/b"};
  EXPECT_FALSE(job_script(slurm).ok());
}

}  // namespace
}  // namespace phalanx::cli
