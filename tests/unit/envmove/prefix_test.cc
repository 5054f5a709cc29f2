#include "envmove/prefix.h"

#include <gtest/gtest.h>

#include <random>

using namespace phalanx;
using envmove::Move;

namespace {

constexpr size_t kNone = std::string_view::npos;

TEST(FindPrefix, OnlyWholePaths) {
  const std::string prefix = "/envs/llm";
  for (const char* text : {"/envs/llm", "/envs/llm/bin", "PATH=/envs/llm:/bin", "-L/envs/llm/lib", "-Wl,-rpath,/envs/llm/lib",
                           "\"/envs/llm\"", "file:///envs/llm/src", "It lies in /envs/llm.", "(/envs/llm)", "-isystem/envs/llm/include",
                           "'a\\n/envs/llm'", "gcc @/envs/llm/x.rsp", "file://localhost/envs/llm", "x=//envs/llm", "在：/envs/llm。"})
    EXPECT_NE(envmove::find_prefix(text, prefix), kNone) << text;
  for (const char* text :
       {"/envs/llm2", "/envs/llm2/bin", "/envs/llm-old/bin", "/envs/llm.bak/bin", "/envs/llm_1", "/mnt/envs/llm/bin", "home/envs/llm",
        "/x/-L/envs/llm/lib", "/envs/llm~", "/envs/llm中/bin", "../envs/llm", "/envs", "", "/mnt//envs/llm", "/envs/llm\\u6587/x",
        "me@/envs/llm", "http://host/envs/llm", "localhost/envs/llm", "///envs/llm"})
    EXPECT_EQ(envmove::find_prefix(text, prefix), kNone) << text;
  EXPECT_EQ(envmove::find_prefix("/envs/llm2:/envs/llm", prefix), 11u);
  EXPECT_EQ(envmove::find_prefix("/a", ""), kNone);
}

TEST(ReplaceText, EachHitOnceAndTheNewPlaceNever) {
  Move move{{"/opt/llm"}, "/data/envs/llm"};
  auto done = envmove::replace_text("a=/opt/llm/bin:/opt/llm2/bin:/opt/llm", move);
  EXPECT_EQ(done.data, "a=/data/envs/llm/bin:/opt/llm2/bin:/data/envs/llm");
  EXPECT_EQ(done.hits, 2u);
  // The new place lies below the old one: a second move finds nothing to do.
  Move deeper{{"/opt/llm"}, "/opt/llm/envs/a"};
  auto once = envmove::replace_text("x=/opt/llm/bin y=/opt/llm/envs/b", deeper);
  EXPECT_EQ(once.data, "x=/opt/llm/envs/a/bin y=/opt/llm/envs/a/envs/b");
  auto twice = envmove::replace_text(once.data, deeper);
  EXPECT_EQ(twice.hits, 0u);
  EXPECT_EQ(twice.data, once.data);
}

TEST(ReplaceText, OfSeveralFormerPlacesTheLongestThatFits) {
  Move move{{"/home/u", "/home/u/env"}, "/n"};
  EXPECT_EQ(envmove::replace_text("/home/u/env/bin /home/u/x", move).data, "/n/bin /n/x");
}

std::string with_nuls(std::string_view text, size_t nuls) { return std::string(text) + std::string(nuls, '\0'); }

// Searched anew for each hit, these would take hours.
TEST(ReplaceText, WhatNamesOnePlaceManyTimesIsSearchedOnceForTheOthers) {
  constexpr size_t kTimes = 1 << 18;
  const Move move{{"/opt/llm", "/srv/none"}, "/data"};
  std::string text, program, wide;
  for (size_t i = 0; i < kTimes; ++i) text += "/opt/llm:", program += std::string("/opt/llm\0", 9);
  for (char c : program.substr(0, program.size() / 8)) wide += std::string(1, c) + '\0';
  EXPECT_EQ(envmove::replace_text(text, move).hits, kTimes);
  EXPECT_EQ(envmove::replace_binary(program, move, 0).hits, kTimes);
  EXPECT_EQ(envmove::replace_binary(wide, move, 0).hits, kTimes / 8);
}

TEST(ReplaceBinary, ShorterIsFilledAndTheLengthStays) {
  const std::string data = "\x7f" + with_nuls("ELF/opt/conda/lib:/opt/conda/lib64", 1) + "tail";
  auto done = envmove::replace_binary(data, {{"/opt/conda"}, "/c"}, 0);
  EXPECT_TRUE(done.too_long.empty());
  EXPECT_EQ(done.data.size(), data.size());
  EXPECT_EQ(done.hits, 1u) << "the first stands within a longer word";
  auto clean = envmove::replace_binary(with_nuls("/opt/conda/lib:/opt/conda/lib64", 1) + "tail", {{"/opt/conda"}, "/c"}, 0);
  EXPECT_EQ(clean.hits, 2u);
  EXPECT_EQ(clean.data, with_nuls("/c/lib:/c/lib64", 17) + "tail");
}

TEST(ReplaceBinary, LongerTakesOnlyTheRoomThePlaceholderLeft) {
  // A placeholder of 20 bytes, installed at 4: 16 zeros follow each string, then other data.
  const std::string data = with_nuls("/old/share", 17) + std::string("\0\0\0next", 7);
  auto done = envmove::replace_binary(data, {{"/old"}, "/much/longer/new"}, 20);
  ASSERT_TRUE(done.too_long.empty());
  EXPECT_EQ(done.data, with_nuls("/much/longer/new/share", 5) + std::string("\0\0\0next", 7));
  EXPECT_TRUE(envmove::replace_binary(data, {{"/old"}, "/exactly/20/bytes/xx"}, 20).too_long.empty());
  EXPECT_EQ(envmove::replace_binary(data, {{"/old"}, "/exactly/21/bytes/xxx"}, 20).too_long.size(), 1u);
  EXPECT_EQ(envmove::replace_binary(data, {{"/old"}, "/older"}, 0).too_long.size(), 1u) << "nobody knows whose zeros these are";
}

// Strings of Rust and Go have a length and stand side by side.
TEST(ReplaceBinary, InAProgramThatNobodyPreparedNothingShifts) {
  const std::string data = with_nuls(
                               "/old/place/data/model.bin"
                               "weights.0="
                               "/old/place -L/old/place:",
                               3) +
                           with_nuls("/old/place", 1) + "x";
  auto there = envmove::replace_binary(data, {{"/old/place"}, "/new"}, std::nullopt);
  EXPECT_EQ(there.hits, 4u);
  EXPECT_EQ(there.data, with_nuls("/new///////data/model.bin"
                                  "weights.0="
                                  "/new////// -L/new//////:",
                                  3) +
                            with_nuls("/new", 7) + "x");
  EXPECT_TRUE(there.too_long.empty());
  const std::string shorter = with_nuls("/new///////data/model.bin", 1);
  EXPECT_EQ(envmove::replace_binary(shorter, {{"/new"}, "/old/place"}, std::nullopt).data, with_nuls("/old/place/data/model.bin", 1))
      << "the slashes make room for the way back";
  for (const char* text : {"/old/%s/lib", "/old/*.so:/old/$NAME", "/old/"}) {
    auto longer = envmove::replace_binary(with_nuls(text, 1), {{"/old"}, "/older"}, std::nullopt);
    EXPECT_FALSE(longer.too_long.empty()) << text << ": the slash before what becomes a name is no room";
  }
  EXPECT_EQ(envmove::replace_binary(data, {{"/old/place"}, "/much/longer"}, std::nullopt).too_long.size(), 4u);
}

TEST(Spelled, AsJsonAndAsciiDo) {
  using envmove::Spelling;
  EXPECT_EQ(envmove::spelled("/home/用户/a-b", Spelling::kAscii), "/home/\\u7528\\u6237/a-b");
  EXPECT_EQ(envmove::spelled("/\xf0\x9f\x98\x80", Spelling::kAscii), "/\\ud83d\\ude00");
  EXPECT_EQ(envmove::spelled("/plain", Spelling::kAscii), "/plain");
  EXPECT_EQ(envmove::spelled("/\xff", Spelling::kAscii), "/\xff") << "no text";
}

TEST(Spelled, AsLiteralsDo) {
  using envmove::Spelling;
  for (Spelling spelling : envmove::kOtherSpellings) EXPECT_EQ(envmove::spelled("/opt/a b$", spelling), "/opt/a b$");
  EXPECT_EQ(envmove::spelled("/o'b/c", Spelling::kShell), "/o'\\''b/c");
  EXPECT_EQ(envmove::spelled(R"(/o'b/"c\d)", Spelling::kSingleQuoted), R"(/o\'b/"c\\d)");
  EXPECT_EQ(envmove::spelled(R"(/o'b/"c\d)", Spelling::kDoubleQuoted), R"(/o'b/\"c\\d)");
}

using envmove::Code;

TEST(ReplaceSpellings, ALiteralStaysOne) {
  const envmove::Move there{{"/opt/llm"}, R"(/home/o'brien/a"b\c)"};
  auto done = [&](std::string_view text, Code code = Code::kPython) { return envmove::replace_spellings(text, there, code).data; };
  EXPECT_EQ(done(R"(MAPPING = {'a': '/opt/llm/src', "b": "/opt/llm", 'c': '-I/opt/llm/x'}  # don't /opt/llm)"),
            R"(MAPPING = {'a': '/home/o\'brien/a"b\\c/src', "b": "/home/o'brien/a\"b\\c", 'c': '-I/home/o\'brien/a"b\\c/x'})"
            R"(  # don't /home/o'brien/a"b\c)");
  EXPECT_EQ(done(R"("'--prefix=/opt/llm'")"), R"("'--prefix=/home/o'brien/a\"b\\c'")") << "the outer one encloses it";
  EXPECT_EQ(done(R"(r'/opt/llm' + '/opt/llm')"), R"(r'/home/o'brien/a"b\c' + '/home/o\'brien/a"b\\c')") << "in r'…' nothing can be";
  EXPECT_EQ(done("'''it's\n/opt/llm'''"), R"('''it's)"
                                          "\n"
                                          R"(/home/o\'brien/a"b\\c''')");
  EXPECT_EQ(done("x = 'no end\n/opt/llm"), "x = 'no end\n/home/o'brien/a\"b\\c") << "a line ends a short one";
  EXPECT_EQ(done(R"({"a": "\"/opt/llm\""})"), R"({"a": "\"/home/o'brien/a\"b\\c\""})");
  EXPECT_EQ(done(R"(set(X "/opt/llm") # it's in /opt/llm)", Code::kSome),
            R"(set(X "/home/o'brien/a\"b\\c") # it's in /home/o'brien/a"b\c)");
  EXPECT_EQ(done("libdir='/opt/llm'", Code::kSome), R"(libdir='/home/o'brien/a"b\c')") << "languages differ in what a single quote is";
  EXPECT_EQ(done("X='/opt/llm' Y=/opt/llm", Code::kShell), R"(X='/home/o'\''brien/a"b\c' Y=/home/o'brien/a"b\c)");
}

TEST(ReplaceText, AFormerPlaceThatBeginsWithTheNewOne) {
  const envmove::Move move{{"/x/env copy"}, "/x/env"};
  EXPECT_EQ(envmove::replace_text("/x/env copy/bin:/x/env copy /x/env/bin", move).data, "/x/env/bin:/x/env /x/env/bin");
  EXPECT_EQ(envmove::replace_text("/x/bob's env/bin", {{"/x/bob's env"}, "/x/bob"}).data, "/x/bob/bin");
}

TEST(ReplaceText, AFormerPlaceBelowTheNewOne) {
  envmove::Move move{{"/x/llm/env"}, "/x/llm"};
  EXPECT_EQ(envmove::replace_text("/x/llm/env/bin /x/llm/bin", move).hits, 0u) << "a file of the new place may be called that";
  EXPECT_EQ(envmove::moved_path("/x/llm/env/bin/python", move), "/x/llm/env/bin/python");
  move.gone = true;
  EXPECT_EQ(envmove::replace_text("/x/llm/env/bin:/x/llm/env2 /x/llm/bin", move).data, "/x/llm/bin:/x/llm/env2 /x/llm/bin");
  EXPECT_EQ(envmove::moved_path("/x/llm/env/bin/python", move), "/x/llm/bin/python");
  EXPECT_EQ(envmove::moved_path("/x/llm/bin/python", move), "/x/llm/bin/python");
}

TEST(ReplaceSpellings, WhatIsThereAlreadyStays) {
  const envmove::Move deeper{{"/opt/llm"}, "/opt/llm/o'b"};
  for (const char* text : {"'/opt/llm'", "\"/opt/llm\"", "/opt/llm"}) {
    const auto once = envmove::replace_spellings(text, deeper, Code::kPython);
    EXPECT_EQ(once.hits, 1u) << text;
    EXPECT_EQ(envmove::replace_spellings(once.data, deeper, Code::kPython).hits, 0u) << once.data;
    const auto there = envmove::replace_spellings(text, {{"/opt/llm"}, R"(/o'"\)"}, Code::kPython);
    EXPECT_EQ(envmove::replace_spellings(there.data, {{R"(/o'"\)"}, "/opt/llm"}, Code::kPython).data, text) << there.data;
  }
  EXPECT_EQ(envmove::replace_spellings(R"(X='/opt/llm/o'\''b')", deeper, Code::kShell).hits, 0u);
}

TEST(ReplaceBinary, WideStrings) {
  for (size_t unit : {2, 4})
    for (bool big : {false, true}) {
      auto wide = [&](std::string_view text) {
        std::string out;
        for (char c : text) {
          std::string one(unit, '\0');
          one[big ? unit - 1 : 0] = c;
          out += one;
        }
        return out;
      };
      const std::string data = wide(std::string("x\0/opt/conda/lib\0", 17)) + "tail";
      auto done = envmove::replace_binary(data, {{"/opt/conda"}, "/c"}, 0);
      EXPECT_EQ(done.hits, 1u) << unit << big;
      EXPECT_EQ(done.data, wide(std::string("x\0/c/lib\0", 9) + std::string(8, '\0')) + "tail") << unit << big;
    }
}

TEST(Shebang, FormsAndBack) {
  auto plain = envmove::read_shebang("#! /old/bin/python3.11 -E\nprint(1)\n");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->interpreter, "/old/bin/python3.11");
  EXPECT_EQ(plain->arguments, " -E");
  EXPECT_EQ(*envmove::write_shebang(*plain, "/new/bin/python3.11", "print(1)\n"), "#!/new/bin/python3.11 -E\nprint(1)\n");
  auto simple = envmove::read_shebang("#!/old/bin/python\nx\n");
  ASSERT_TRUE(simple);
  const std::string blank = *envmove::write_shebang(*simple, "/a b/bin/python", "x\n");
  EXPECT_EQ(blank, "#!/bin/sh\n'''exec' \"/a b/bin/python\" \"$0\" \"$@\"\n' '''\nx\n");
  auto back = envmove::read_shebang(blank);
  ASSERT_TRUE(back);
  EXPECT_TRUE(back->by_shell);
  EXPECT_EQ(*envmove::write_shebang(*back, "/old/bin/python", std::string_view(blank).substr(back->end)), "#!/old/bin/python\nx\n");
  const std::string far = "/" + std::string(200, 'x') + "/bin/python";
  EXPECT_TRUE(envmove::write_shebang(*simple, far, "x\n")->starts_with("#!/bin/sh\n"));
  EXPECT_FALSE(envmove::write_shebang(*simple, far, "\"\"\"Doc.\"\"\"\nfrom __future__ import annotations\n"));
  EXPECT_FALSE(envmove::write_shebang(*plain, far, "x\n")) << "its argument would be lost";
  EXPECT_FALSE(envmove::write_shebang(*envmove::read_shebang("#!/old/bin/perl\n"), far + "/perl", "x\n"));
  for (const char* text : {"", "#", "#!", "#!python\n", "#!/bin/sh\n'''exec' \"$(dirname x)/python\" \"$0\" \"$@\"\n' '''\n"})
    EXPECT_FALSE(envmove::read_shebang(text) && envmove::read_shebang(text)->interpreter != "/bin/sh") << text;
}

TEST(Shebang, OfPixiIsReadToo) {
  const std::string script = "#!/bin/sh\n'''exec' \"/old env/bin/python\" \"$0\" \"$@\" #'''\nprint(1)\n";
  auto read = envmove::read_shebang(script);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->interpreter, "/old env/bin/python");
  EXPECT_EQ(script.substr(read->end), "print(1)\n");
}

TEST(Activation, AValueIsAWordOfTheShell) {
  auto done = [](std::string_view script, const std::string& to) { return envmove::replace_activation(script, {{"/old"}, to}).data; };
  EXPECT_EQ(done("  VIRTUAL_ENV=/old\nexport VIRTUAL_ENV", "/a b"), "  VIRTUAL_ENV='/a b'\nexport VIRTUAL_ENV");
  EXPECT_EQ(done("VIRTUAL_ENV='/old'\n", "/new"), "VIRTUAL_ENV=/new\n");
  EXPECT_EQ(done("VIRTUAL_ENV=\"/old\"\n", "/a b"), "VIRTUAL_ENV=\"/a b\"\n");
  EXPECT_EQ(done("VIRTUAL_ENV=\"/old\"\n", "/$(x)"), "VIRTUAL_ENV='/$(x)'\n");
  EXPECT_EQ(done("setenv VIRTUAL_ENV /old\n", "/a b"), "setenv VIRTUAL_ENV '/a b'\n");
  EXPECT_EQ(done("set -gx VIRTUAL_ENV /old\n", "/new"), "set -gx VIRTUAL_ENV /new\n");
  EXPECT_EQ(done("VIRTUAL_ENV=/old2\n", "/new"), "VIRTUAL_ENV=/old2\n");
  // As a Python that quotes nothing wrote it, at places that need it.
  auto moved = [](std::string_view line, const std::string& from) { return envmove::replace_activation(line, {{from}, "/n"}).data; };
  EXPECT_EQ(moved(R"(VIRTUAL_ENV="/a\b")", R"(/a\b)"), R"(VIRTUAL_ENV="/n")");
  EXPECT_EQ(moved(R"(VIRTUAL_ENV="/a$b")", "/a$b"), R"(VIRTUAL_ENV="/n")");
  EXPECT_EQ(moved(R"(VIRTUAL_ENV="/a"b")", R"(/a"b)"), R"(VIRTUAL_ENV="/n")");
  EXPECT_EQ(moved(R"(VIRTUAL_ENV='/o'"'"'b')", "/o'b"), "VIRTUAL_ENV=/n") << "shlex.quote";
  // As Python 3.12 and 3.13 write it.
  EXPECT_EQ(done("    export VIRTUAL_ENV=$(cygpath \"/old\")\n", "/a\"b"), "    export VIRTUAL_ENV=$(cygpath '/a\"b')\n");
  EXPECT_EQ(done("        VIRTUAL_ENV=$(cygpath /old)\n        export VIRTUAL_ENV\n", "/o'b"),
            "        VIRTUAL_ENV=$(cygpath '/o'\\''b')\n        export VIRTUAL_ENV\n");
  EXPECT_EQ(done("        export VIRTUAL_ENV='/old'\n", "/a b"), "        export VIRTUAL_ENV='/a b'\n");
}

TEST(Activation, APlaceIsReadAsTheShellReadsIt) {
  EXPECT_EQ(envmove::activation_place("VIRTUAL_ENV='/o'\\''b'"), "/o'b");
  EXPECT_EQ(envmove::activation_place("  export VIRTUAL_ENV=\"/a b\"  "), "/a b");
  EXPECT_EQ(envmove::activation_place("set -gx VIRTUAL_ENV /a\\ b"), "/a b");
  EXPECT_EQ(envmove::activation_place(R"(VIRTUAL_ENV="/a\b\"c\\d")"), R"(/a\b"c\d)");
  for (const char* line : {"VIRTUAL_ENV=$HOME/env", "VIRTUAL_ENV=\"$(pwd)\"", "VIRTUAL_ENV=/a b", "VIRTUAL_ENV='/a", "VIRTUAL_ENV=/a\\",
                           "VIRTUAL_ENV=`pwd`", "unset VIRTUAL_ENV", ""})
    EXPECT_FALSE(envmove::activation_place(line)) << line;
}

// For random places and contents: what was moved there and back is what it was, and no binary changes its length.
TEST(Property, ThereAndBack) {
  std::mt19937 random(7);
  auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  auto place = [&] {
    std::string out;
    for (size_t parts = 1 + below(4); parts > 0; --parts) {
      out += "/";
      for (size_t letters = 1 + below(12); letters > 0; --letters) out += "abcxyz09-_."[below(8)];
    }
    return out;
  };
  const std::string pieces[] = {"/bin", ":", "\n", " ", "2", "-old", "/lib/x", "lib", "=", "\"", "//", ".", "中", "#!"};
  size_t moved = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::string a = place(), b = place();
    std::string text, binary;
    for (size_t n = below(20); n > 0; --n) {
      text += below(3) == 0 ? a : pieces[below(std::size(pieces))];
      binary += (below(2) == 0 ? a : "") + pieces[below(std::size(pieces))] + std::string(1 + below(3), '\0');
    }
    // What names b before the move cannot be told from what was moved there.
    if (text.find(b) != std::string::npos || binary.find(b) != std::string::npos || a.find(b) != std::string::npos ||
        b.find(a) != std::string::npos)
      continue;
    auto there = envmove::replace_text(text, {{a}, b});
    EXPECT_EQ(envmove::find_prefix(there.data, a), kNone) << text << " " << a << " " << b;
    EXPECT_EQ(envmove::replace_text(there.data, {{a}, b}).hits, 0u);
    EXPECT_EQ(envmove::replace_text(there.data, {{b}, a}).data, text) << a << " " << b;
    auto done = envmove::replace_binary(binary, {{a}, b}, 0);
    EXPECT_EQ(done.data.size(), binary.size());
    if (b.size() == a.size() && done.too_long.empty()) { EXPECT_EQ(envmove::replace_binary(done.data, {{b}, a}, 0).data, binary); }
    auto kept = envmove::replace_binary(binary, {{a}, b}, std::nullopt);
    EXPECT_EQ(kept.data.size(), binary.size());
    // A string that is the place and nothing else is filled with NULs, which a way back does not take.
    const bool fits =
        b.size() <= a.size() && binary.find(std::string(1, '\0') + a + '\0') == std::string::npos && !binary.starts_with(a + '\0');
    const auto back = envmove::replace_binary(kept.data, {{b}, a}, std::nullopt);
    EXPECT_TRUE(!fits || !back.too_long.empty() || back.data == binary) << a << " " << b;
    moved += there.hits > 0;
  }
  EXPECT_GT(moved, 1000u);
}

}  // namespace
