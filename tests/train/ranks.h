// Several ranks as threads of one process, over a store in memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/comm/make_group.h"

namespace phalanx::ranks {

// Calls body on `world` threads, each with its own rank's group. An exception is a test failure of its rank.
void run(int world, const std::function<void(engine::comm::Group&)>& body, const engine::comm::GroupOptions& options = {});
// The same with the ranks spread over `hosts` as far as the group can tell: those of one host share memory, Gloo goes between hosts.
void run_on_hosts(int hosts, int world, const std::function<void(engine::comm::Group&)>& body);
// The same for ranks that do not leave together: each keeps its group until all bodies have returned.
void run_apart(int world, const std::function<void(engine::comm::Group&)>& body, const engine::comm::GroupOptions& options = {});

// A new empty folder that lives as long as this.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

uint16_t free_port();  // on 127.0.0.1, at this moment

// The text of tools/make_golden.py.
std::string golden_text(size_t bytes);
base::Json golden();  // tests/train/train/golden.json
// How far a parameter's gradient, [numel] fp32, is from one in golden(): the Euclidean distance of the elements that are kept there over
// their norm, or what the norm of all elements differs by over that norm, whichever is larger.
double apart(const at::Tensor& grad, const base::Json& golden);

}  // namespace phalanx::ranks
