// Faults of environments that are really made on the test cluster, found by `phalanx check`.
#include "check_fixture.h"

namespace {

using namespace phalanx::testbed;
using namespace std::chrono_literals;

class CheckSoftware : public Check {
 protected:
  // A virtual environment at /tmp/env on every host, with the metadata of the packages a training environment has.
  void environments() {
    for (const std::string& host : cluster().hosts())
      say(host,
          "python3 -m venv --without-pip /tmp/env && cd /tmp/env/lib/python3*/site-packages && for p in torch-2.4.0 transformers-4.44.2 "
          "deepspeed-0.15.1; do "
          "mkdir $p.dist-info; printf 'Metadata-Version: 2.1\\nName: %s\\nVersion: %s\\n' ${p%-*} ${p#*-} > $p.dist-info/METADATA; done; "
          "printf '#!/tmp/env/bin/python3\\nprint(1)\\n' > /tmp/env/bin/torchrun; chmod +x /tmp/env/bin/torchrun; echo 'import torch' > "
          "/tmp/train.py");
  }
  Words command(const std::string& program = "/tmp/env/bin/python3") { return with(kHosts, {"--", program, "/tmp/train.py"}); }
};

TEST_F(CheckSoftware, EnvironmentsThatDiffer) {
  start({.hosts = 3});
  environments();
  Checked before = check(command());
  for (const char* code : {"ENV-TORCH-DIFFERS", "ENV-PACKAGE-ABSENT", "ENV-SHEBANG"}) expect_gone(before, code);

  say("h2",
      "cd /tmp/env/lib/python3*/site-packages; mv torch-2.4.0.dist-info torch-2.3.1.dist-info; sed -i s/2.4.0/2.3.1/ "
      "torch-2.3.1.dist-info/METADATA");
  expect(check(command()), "ENV-TORCH-DIFFERS", "h2");
  say("h2",
      "cd /tmp/env/lib/python3*/site-packages; mv torch-2.3.1.dist-info torch-2.4.0.dist-info; sed -i s/2.3.1/2.4.0/ "
      "torch-2.4.0.dist-info/METADATA");

  say("h3", "cd /tmp/env/lib/python3*/site-packages; mv deepspeed-0.15.1.dist-info /tmp/away");
  expect(check(command()), "ENV-PACKAGE-ABSENT", "h3");
  say("h3", "cd /tmp/env/lib/python3*/site-packages; mv /tmp/away deepspeed-0.15.1.dist-info");

  say("h2", "sed -i '1s#.*#\\#!/home/me/anaconda2/envs/llm/bin/python3.11#' /tmp/env/bin/torchrun");
  expect_fixed(command("/tmp/env/bin/torchrun"), "ENV-SHEBANG", "h2");
  Checked clean = check(command("/tmp/env/bin/torchrun"));
  for (const char* code : {"ENV-TORCH-DIFFERS", "ENV-PACKAGE-ABSENT", "ENV-SHEBANG"}) expect_gone(clean, code);
}

TEST_F(CheckSoftware, AStaleLock) {
  start({.hosts = 3});
  environments();
  say("h2",
      "mkdir -p ~/.cache/torch_extensions/py311_cpu/fused_adam; touch -d '2 hours ago' "
      "~/.cache/torch_extensions/py311_cpu/fused_adam/lock");
  expect_fixed(command(), "ENV-EXT-LOCK", "h2");
}

// The GPUs are the stand-in NVML library's; the variable is the login's own.
TEST_F(CheckSoftware, VisibleDevicesOnOneHostOnly) {
  const HostOptions gpus = session_variable(kGpuLibrary);
  start({.hosts = 3, .host = {gpus, session_variable(kGpuLibrary + " CUDA_VISIBLE_DEVICES=0"), gpus}});
  for (const std::string& host : cluster().hosts()) say(host, two_gpus(host));
  expect(check(kHosts), "VIS-CVD-DIFFERS", "h2");
  expect_gone(check(with(kHosts, {"--env", "CUDA_VISIBLE_DEVICES=0,1"})), "VIS-CVD-DIFFERS");
}

}  // namespace
