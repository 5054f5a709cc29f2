#include "engine/train/cpu.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdlib>
#include <fstream>

#include "engine/train/report/progress.h"
#include "words/message.h"

namespace phalanx::engine::train {
namespace {

// The file that does our matrix products, resolved; "" when it is inside libtorch itself.
std::string blas_library() {
  if (at::hasMKL()) return "";
  void* symbol = dlsym(RTLD_DEFAULT, "sgemm_");
  Dl_info info{};
  if (!symbol || dladdr(symbol, &info) == 0 || !info.dli_fname) return "";
  char* resolved = realpath(info.dli_fname, nullptr);
  std::string path = resolved ? resolved : info.dli_fname;
  std::free(resolved);
  return path;
}

// Best of three, so that a busy host does not look like a slow library.
double measured_gflops() {
  constexpr int64_t n = 256;
  at::Tensor a = at::ones({n, n});
  double best = 0;
  for (int i = 0; i < 3; ++i) {
    auto start = std::chrono::steady_clock::now();
    at::Tensor product = at::mm(a, a);
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::max(best, 2.0 * n * n * n / took.count() / 1e9);
  }
  return best;
}

}  // namespace

int use_threads(const comm::RankEnv& env) {
  if (!comm::process_environment("OMP_NUM_THREADS") && env.world > 1 && env.local_world > 1) at::set_num_threads(1);
  const int threads = at::get_num_threads();
  // OpenBLAS built with pthreads has a pool of its own, as large as the host has cores unless it is told.
  using SetThreads = void (*)(int);
  if (auto set = reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))) set(threads);
  return threads;
}

void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, INT_MAX);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 64 << 20);
}

void return_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 20);  // setting it also stops glibc from raising it by itself
}

std::optional<std::string> slow_blas_warning() {
  const std::string library = blas_library();
  // The reference implementation's file is …/blas/libblas.so.3.x, or libblas.so.3.x where it stands alone.
  const size_t name = library.rfind('/') + 1;
  const bool reference = library.compare(name, 8, "libblas.") == 0 && library.find("openblas") == std::string::npos &&
                         library.find("atlas") == std::string::npos && library.find("blis") == std::string::npos &&
                         library.find("mkl") == std::string::npos;
  if (library.empty() || !reference) return std::nullopt;
  return words::tr(language_here(),
                   "warning: matrix products run at {:.1f} GFLOP/s, about 20 times slower than they could\n"
                   "  because {} is the unoptimised reference BLAS\n\nhint: apt-get install libopenblas0-pthread\n",
                   measured_gflops(), library);
}

int64_t resident_bytes() {
  int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;  // proc(5): in pages
  return resident * sysconf(_SC_PAGESIZE);
}

int64_t resident_peak_bytes() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss * 1024 : 0;
}

}  // namespace phalanx::engine::train
