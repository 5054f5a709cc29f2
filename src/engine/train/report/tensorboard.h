// Scalars for TensorBoard, in a file of their own for each start of the program: <folder>/events.out.tfevents.<time>.<host>.<pid>.0
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "engine/train/report/event_file.h"
#include "os/fd.h"

namespace phalanx::engine::train {

class TensorBoard {
 public:
  TensorBoard() = default;  // writes nothing
  // Makes the folder and a new file in it. What earlier files say of steps after `step` is void: they will be taken again.
  static base::Result<TensorBoard> open(const std::string& folder, int64_t step);

  bool is_open() const { return file_.valid(); }
  base::Status write(int64_t step, std::span<const Scalar> scalars);  // one write(2)

 private:
  os::Fd file_;
  std::string path_;
};

}  // namespace phalanx::engine::train
