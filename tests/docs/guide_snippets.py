"""The C++ of docs/guides/from-python-ddp is that of programs that compile: every line of every ```cpp block stands in an example, and
both languages show the same code.

Usage: guide_snippets.py SOURCE
"""
import pathlib
import re
import sys


def blocks(path, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", path.read_text(), re.M | re.S)


def main():
    source = pathlib.Path(sys.argv[1])
    guides = [source / "docs/guides" / name for name in ("from-python-ddp.md", "from-python-ddp.zh-CN.md")]
    lines = {line.split("  //")[0].strip() for file in source.glob("examples/*/main.cc") for line in file.read_text().splitlines()}
    cmake = {line.strip() for file in source.glob("examples/*/CMakeLists.txt") for line in file.read_text().splitlines()}
    checked, wrong = 0, []
    for guide in guides:
        for language, known in (("cpp", lines), ("cmake", cmake)):
            for line in filter(str.strip, "\n".join(blocks(guide, language)).splitlines()):
                checked += 1
                if line.strip() not in known:
                    wrong.append(f"{guide.name}: no example has this line: {line}")
    for language in ("cpp", "python", "cmake"):
        if blocks(guides[0], language) != blocks(guides[1], language):
            wrong.append(f"the {language} blocks of the two languages differ")
    print("\n".join(wrong) or f"{checked} lines of C++ and CMake stand in the examples")
    return 1 if wrong or checked < 50 else 0


sys.exit(main())
