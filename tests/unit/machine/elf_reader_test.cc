// Libraries read by their headers: those of this machine where it has them, files built by hand, and files that lie.
#include "machine/software/elf_reader.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "library_file.h"
#include "machine/software/parts.h"
#include "os/files.h"
#include "scratch.h"

namespace phalanx::machine {
namespace {

TEST(Elf, SectionsAndDynamicEntriesOfABuiltLibrary) {
  std::string bytes =
      test::library_file({{".rodata", std::string("x\0NCCL version mismatch %d", 26) + std::string("\0NCCL version 2.20.5+cuda12.4\0", 30)},
                          {".nv_fatbin", test::fatbin({{2, 80}, {2, 90}, {1, 90}}) + test::fatbin({{2, 75}})}},
                         {"libnccl.so.2", "libc.so.6"}, DT_RPATH, "$ORIGIN:$ORIGIN/../../nvidia/nccl/lib");
  std::optional<ElfDynamic> dynamic = elf_dynamic(bytes);
  ASSERT_TRUE(dynamic.has_value());
  EXPECT_EQ(dynamic->needed, (std::vector<std::string>{"libnccl.so.2", "libc.so.6"}));
  EXPECT_EQ(dynamic->rpath, "$ORIGIN:$ORIGIN/../../nvidia/nccl/lib");
  EXPECT_EQ(dynamic->runpath, "");
  ASSERT_TRUE(elf_section(bytes, ".rodata").has_value());
  EXPECT_EQ(nccl_version_in(*elf_section(bytes, ".rodata")), "2.20.5+cuda12.4");
  EXPECT_EQ(fatbin_archs(*elf_section(bytes, ".nv_fatbin")), (std::vector<std::string>{"sm_75", "sm_80", "sm_90", "compute_90"}));
  EXPECT_FALSE(elf_section(bytes, ".none").has_value());
}

TEST(Elf, WhatIsNoLibraryIsNothing) {
  for (std::string_view bytes : {"",
                                 "\x7f"
                                 "ELF",
                                 "not a library at all, but long enough to hold a header of sixty-four bytes.."}) {
    EXPECT_FALSE(elf_dynamic(bytes).has_value());
    EXPECT_FALSE(elf_section(bytes, ".rodata").has_value());
  }
}

// Every cut and every changed byte of a good file must be survived; what comes out does not matter.
TEST(Elf, CutAndChangedFilesAreSurvived) {
  std::string good = test::library_file({{".rodata", "NCCL version 2.20.5+cuda12.4"}, {".nv_fatbin", test::fatbin({{2, 80}})}}, {"a.so"},
                                        DT_RUNPATH, "/x");
  size_t looked = 0;
  auto read_all = [&](std::string_view bytes) {
    if (elf_dynamic(bytes)) ++looked;
    for (const char* name : {".rodata", ".nv_fatbin"})
      if (std::optional<std::string_view> section = elf_section(bytes, name))
        looked += nccl_version_in(*section).size() + fatbin_archs(*section).size();
  };
  for (size_t n = 0; n < good.size(); ++n) read_all(std::string_view(good).substr(0, n));
  for (size_t i = 0; i < good.size(); ++i)
    for (char value : {'\x00', '\x7f', '\xff'}) {
      std::string changed = good;
      changed[i] = value;
      read_all(changed);
    }
  EXPECT_GT(looked, 0u);
}

TEST(Elf, AFatBinaryThatNeverEndsIsLeft) {
  EXPECT_TRUE(fatbin_archs(std::string(8 << 20, '\0')).empty());
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += test::fatbin({{2, static_cast<uint32_t>(50 + i % 40)}});
  EXPECT_LE(fatbin_archs(many, 100).size(), 40u);
  std::string hostile = test::fatbin({{2, 80}});
  std::memset(hostile.data() + 8, 0xff, 8);  // a size of 2^64 - 1
  EXPECT_TRUE(fatbin_archs(hostile).empty());
}

TEST(Elf, NcclOfThisMachine) {
  const std::string path = "/usr/local/cuda-13.0/lib/libnccl.so.2";
  if (!os::exists(path)) GTEST_SKIP() << "no " << path;
  const auto worked = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const auto begin = worked();
  MappedFile file(path);
  std::optional<std::string_view> constants = elf_section(file.bytes(), ".rodata"), code = elf_section(file.bytes(), ".nv_fatbin");
  ASSERT_TRUE(constants.has_value());
  ASSERT_TRUE(code.has_value());
  std::string version = nccl_version_in(*constants);
  EXPECT_TRUE(version.starts_with("2.") && version.find("+cuda13") != std::string::npos) << version;
  std::vector<std::string> archs = fatbin_archs(*code);
  EXPECT_NE(std::find(archs.begin(), archs.end(), "sm_80"), archs.end());
  EXPECT_NE(std::find(archs.begin(), archs.end(), "compute_120"), archs.end());
  const auto took = worked() - begin;  // not what other processes take meanwhile
  EXPECT_LT(took, std::chrono::milliseconds(500));
  RecordProperty("us", static_cast<int>(std::chrono::duration_cast<std::chrono::microseconds>(took).count()));
}

TEST(Elf, VersionsAreNumbers) {
  EXPECT_TRUE(version_less("2.9", "2.36"));
  EXPECT_TRUE(version_less("", "2.2.5"));
  EXPECT_TRUE(version_less("2.18.1+cuda12.1", "2.20"));
  EXPECT_FALSE(version_less("2.36", "2.36"));
  EXPECT_FALSE(version_less("5.10.0-28-amd64", "5.5"));
  EXPECT_TRUE(version_less("4.18.0-553.el8", "5.5"));
}

// The order in which ld.so would find NCCL, with libraries built by hand.
struct Install {
  std::string root;
  explicit Install(int tag) {
    root = scratch::folder("nccl");
    put("/site/torch/version.py", "__version__ = '2.4.0'\ncuda = '12.1'\n");
    put("/site/torch/lib/libtorch_cuda.so", test::library_file({}, {"libnccl.so.2"}, tag, "$ORIGIN/../../nvidia/nccl/lib:$ORIGIN"));
    nccl("/site/nvidia/nccl/lib", "2.20.5+cuda12.4");
    nccl("/opt/nccl/lib", "2.14.3+cuda11.7");
    nccl("/lib/x86_64-linux-gnu", "2.12.12+cuda11.6");
  }
  Install(const Install&) = delete;
  Install& operator=(const Install&) = delete;
  ~Install() { EXPECT_EQ(std::system(("rm -rf " + root).c_str()), 0); }
  void put(const std::string& path, const std::string& text) const {
    EXPECT_TRUE(os::make_folders(root + std::string(folder_of(path))).ok());
    EXPECT_TRUE(os::write_file_atomic(root + path, text).ok());
  }
  void nccl(const std::string& folder, const std::string& version) const {
    put(folder + "/libnccl.so.2", test::library_file({{".rodata", "NCCL version " + version + std::string(1, '\0')}}, {}, 0, ""));
  }
  std::vector<std::string> order(std::map<std::string, std::string> environment) const {
    ProbeRequest request;
    request.root = root;
    request.environment = std::move(environment);
    SoftwareFacts facts;
    facts.site_packages = {"/site"};
    read_torch(Rooted(root), facts);
    read_nccl_libraries(Rooted(root), request, facts);
    EXPECT_EQ(facts.torch_nccl, "dynamic");
    EXPECT_EQ(facts.nccl.size(), facts.nccl_ways.size());
    std::vector<std::string> versions;
    for (const LibraryFile& library : facts.nccl) versions.push_back(library.version.substr(0, library.version.find('+')));
    return versions;
  }
};

TEST(NcclLibrary, ARunpathComesBehindTheLibraryPathAndAnRpathBefore) {
  using Versions = std::vector<std::string>;
  EXPECT_EQ(Install(DT_RPATH).order({}), (Versions{"2.20.5", "2.12.12"}));
  EXPECT_EQ(Install(DT_RPATH).order({{"LD_LIBRARY_PATH", "/none:/opt/nccl/lib"}}), (Versions{"2.20.5", "2.14.3", "2.12.12"}));
  EXPECT_EQ(Install(DT_RUNPATH).order({{"LD_LIBRARY_PATH", "/none:/opt/nccl/lib"}}), (Versions{"2.14.3", "2.20.5", "2.12.12"}));
  EXPECT_EQ(Install(DT_RPATH).order({{"LD_PRELOAD", "/opt/nccl/lib/libnccl.so.2"}}), (Versions{"2.14.3", "2.20.5", "2.12.12"}));
}

}  // namespace
}  // namespace phalanx::machine
