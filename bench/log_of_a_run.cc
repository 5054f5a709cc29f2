// Writes a log of the given size to standard output, as eight ranks of a long training run make one that is kept in one file: torchrun's
// tags, steps, progress bars, NCCL's INFO lines, warnings that mean nothing; and at its end one rank runs out of GPU memory and the others
// wait.
//
//   log_of_a_run BYTES
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr int kRanks = 8;

void add_step(std::string& out, long step) {
  int rank = static_cast<int>(step % kRanks);
  int second = static_cast<int>(step / 4 % 60), minute = static_cast<int>(step / 240 % 60), hour = static_cast<int>(step / 14400 % 24);
  out += fmt::format(
      "[rank{}]:2024-11-20 {:02}:{:02}:{:02},{:03d} - INFO - trainer.py:812 - step {} | loss {:.4f} | lr {:.3e} | grad_norm "
      "{:.3f} | 41.2 samples/s | 312.4 TFLOPs | mem 61.2 GiB\n",
      rank, hour, minute, second, static_cast<int>(step % 1000), step, 2.0 + 0.3 / (1 + step % 17), 3e-4, 0.7);
  if (step % 5 == 0)
    out += fmt::format("\rEpoch 0:  {:2}%|███▏      | {}/500150 [6:28:43<94:39:17,  1.37it/s, loss=2.{}]", step % 100, step, step % 100);
  if (step % 11 == 0)
    out += fmt::format("gpu0{}:{}:{} [{}] NCCL INFO Channel {:02}/0 : {}[{}] -> {}[{}] via P2P/IPC/read\n", rank, 2000 + rank, 2100 + rank,
                       rank, step % 16, rank, rank, (rank + 1) % kRanks, (rank + 1) % kRanks);
  if (step % 101 == 0)
    out +=
        "/opt/env/lib/python3.10/site-packages/torch/utils/checkpoint.py:31: UserWarning: None of the inputs have requires_grad=True. "
        "Gradients will be None\n";
}

void add_end(std::string& out) {
  out +=
      "[rank5]: Traceback (most recent call last):\n[rank5]:   File \"/job/train.py\", line 214, in <module>\n[rank5]:     main()\n"
      "[rank5]:   File \"/job/train.py\", line 187, in main\n[rank5]:     loss.backward()\n"
      "[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 5 has a total capacity of 79.15 GiB of which "
      "1.06 GiB is free.\n";
  for (int rank = 0; rank < kRanks; ++rank)
    if (rank != 5)
      out += fmt::format(
          "[rank{}]:[E1120 23:10:12.345 ProcessGroupNCCL.cpp:616] [Rank {}] Watchdog caught collective operation timeout: "
          "WorkNCCL(SeqNum=808, OpType=ALLREDUCE, NumelIn=9801523, NumelOut=9801523, Timeout(ms)=600000) ran for 600020 "
          "milliseconds before timing out.\n",
          rank, rank);
}

}  // namespace

int main(int argc, char** argv) {
  long long wanted = argc == 2 ? std::atoll(argv[1]) : 0;
  if (wanted <= 0) {
    std::fputs("usage: log_of_a_run BYTES\n", stderr);
    return 2;
  }
  std::string out;
  long long written = 0;
  for (long step = 0; written + static_cast<long long>(out.size()) < wanted; ++step) {
    add_step(out, step);
    if (out.size() < 1 << 20) continue;
    written += static_cast<long long>(std::fwrite(out.data(), 1, out.size(), stdout));
    out.clear();
  }
  add_end(out);
  std::fwrite(out.data(), 1, out.size(), stdout);
  return 0;
}
