"""The C++ of docs/guides/from-python-ddp and the READMEs is that of programs that compile: every line of every ```cpp block stands in
an example, one block is a whole program, and both languages show the same code.

Usage: guide_snippets.py SOURCE
"""
import pathlib
import re
import sys


def blocks(path, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", path.read_text(), re.M | re.S)


def main():
    source = pathlib.Path(sys.argv[1])
    pairs = [("docs/guides/from-python-ddp.md", "docs/guides/from-python-ddp.zh-CN.md"), ("README.md", "README.zh-CN.md")]
    pairs = [[source / path for path in pair] for pair in pairs]
    lines = {line.split("  //")[0].strip() for file in source.glob("examples/*/main.cc") for line in file.read_text().splitlines()}
    cmake = {line.strip() for file in source.glob("examples/*/CMakeLists.txt") for line in file.read_text().splitlines()}
    checked, wrong = 0, []
    for guide in sum(pairs, []):
        for language, known in (("cpp", lines), ("cmake", cmake)):
            for line in filter(str.strip, "\n".join(blocks(guide, language)).splitlines()):
                checked += 1
                if line.split("  //")[0].strip() not in known:
                    wrong.append(f"{guide.name}: no example has this line: {line}")
    # The whole program is printed as it is, includes and all.
    for guide in pairs[0]:
        for language, file in (("cpp", "main.cc"), ("cmake", "CMakeLists.txt")):
            if (source / "examples/first" / file).read_text() not in blocks(guide, language):
                wrong.append(f"{guide.name}: no {language} block is the whole examples/first/{file}")
    for english, chinese in pairs:
        for language in ("cpp", "python", "cmake"):
            if blocks(english, language) != blocks(chinese, language):
                wrong.append(f"the {language} blocks of {english.name} and {chinese.name} differ")
    print("\n".join(wrong) or f"{checked} lines of C++ and CMake stand in the examples")
    return 1 if wrong or checked < 50 else 0


sys.exit(main())
