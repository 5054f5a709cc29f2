#include "engine/train/report/tensorboard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <chrono>

#include "base/try.h"
#include "os/files.h"

namespace phalanx::engine::train {
namespace {

double wall_time() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "host";
  std::string safe = name.data();
  for (char& c : safe)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '.') c = '_';
  return safe;
}

}  // namespace

base::Result<TensorBoard> TensorBoard::open(const std::string& folder, int64_t step) {
  TRY(os::make_folders(folder, 0755));
  TensorBoard board;
  const double now = wall_time();
  // Readers know the file by "tfevents" and take files in the order of their names: the time comes first, in ten digits until 2286.
  // The last number tells apart two files of one process and second.
  for (int number = 0; !board.file_.valid(); ++number) {
    board.path_ = fmt::format("{}/events.out.tfevents.{:010}.{}.{}.{}", folder, static_cast<int64_t>(now), host_name(), getpid(), number);
    board.file_ = os::Fd(::open(board.path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!board.file_.valid() && (errno != EEXIST || number == 1000)) return base::system_error("open", board.path_);
  }
  std::string begin = encode_record(encode_file_version(now));
  if (step > 0) begin += encode_record(encode_restart(now, step + 1));
  TRY(os::write_all(board.file_.get(), begin, board.path_));
  return board;
}

base::Status TensorBoard::write(int64_t step, std::span<const Scalar> scalars) {
  if (!is_open()) return base::ok();
  return os::append_all(file_.get(), encode_record(encode_scalars(wall_time(), step, scalars)), path_);
}

}  // namespace phalanx::engine::train
