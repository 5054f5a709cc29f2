#!/usr/bin/python3
"""Byte-level BPE against a second implementation: random UTF-8 strings, the three split patterns, with and without NFC, added tokens.

tokenizer_test.py TOKENIZER_IDS [STRINGS]; 6,000 strings by default, a million with 1000000. The second implementation is below: plain and
slow, with Python's own tables of Unicode and its regular expressions. decode(encode(x)) must be x, in the normal form that the tokenizer
asks for.
"""
import collections
import json
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import time
import unicodedata

from hf_folders import stand_ins

PROGRAM, STRINGS = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 6000
REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
# As they stand in the files of GPT-2, Llama 3 and Qwen 2.
PATTERNS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama3": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200b))) + "\u2028\u2029\u202f\u205f\u3000"
ASSIGNED = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs")]
FEW = [*"abestlmdrv'SMTRLſK \n\r\t.,!12Ⅷ٣", "'s", "'ll", "'RE", "'ſ", "  ", "\r\n",
       "\x85", "\xa0", "\u3000", "\u2028", "\u200d", "12", "31"]
ADDED = ["<|end|>", "<|end|>s", "<|im_start|>"]


def character_set(kind):
    """The inside of a set of Python's re with all characters whose category begins with `kind`."""
    runs, previous = [], -2
    for character in ASSIGNED:
        if unicodedata.category(character)[0] != kind:
            continue
        if ord(character) != previous + 1:
            runs.append([ord(character), 0])
        previous = runs[-1][1] = ord(character)
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in runs)


def compiled(pattern):
    letters, numbers = character_set("L"), character_set("N")
    spaces = "".join(f"\\u{ord(c):04x}" for c in WHITE_SPACE)
    inside = {r"\p{L}": letters, r"\p{N}": numbers, r"\s": spaces}
    out, in_set = "", False
    for piece in re.findall(r"\\p\{.\}|\\.|.", pattern):
        if piece in "[]":
            in_set = piece == "["
        if piece == r"\S":
            piece = f"[^{spaces}]"
        elif piece in inside:
            piece = inside[piece] if in_set else f"[{inside[piece]}]"
        out += piece
    return re.compile(out)


class Plain:
    """The second implementation."""

    def __init__(self, file, pattern):
        self.word = compiled(pattern)
        self.nfc = file["normalizer"] is not None
        model = file["model"]
        self.vocabulary, self.whole_words = model["vocab"], model["ignore_merges"]
        self.ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(model["merges"])}
        self.added = {one["content"]: one["id"] for one in file["added_tokens"]}
        self.cut = re.compile("(" + "|".join(re.escape(token) for token in sorted(self.added, key=len, reverse=True)) + ")")
        self.bytes = stand_ins()
        self.known = {}

    def merged(self, word):
        if self.whole_words and word in self.vocabulary:
            return [self.vocabulary[word]]
        symbols = list(word)
        while True:
            best = min(((self.ranks.get(pair, 1 << 30), at) for at, pair in enumerate(zip(symbols, symbols[1:]))), default=(1 << 30, 0))
            if best[0] == 1 << 30:
                return [self.vocabulary[symbol] for symbol in symbols]
            symbols[best[1]:best[1] + 2] = [symbols[best[1]] + symbols[best[1] + 1]]

    def encode(self, text):
        """Ids, and the text that they stand for."""
        ids, said = [], ""
        for place, part in enumerate(self.cut.split(text)):
            if place % 2:
                ids.append(self.added[part])
                said += part
                continue
            if self.nfc:
                part = unicodedata.normalize("NFC", part)
            said += part
            words = self.word.findall(part)
            assert "".join(words) == part, part
            for word in words:
                if word not in self.known:
                    if len(self.known) > 1 << 20:
                        self.known.clear()
                    self.known[word] = self.merged("".join(self.bytes[byte] for byte in word.encode()))
                ids += self.known[word]
        return ids, said


def learned_merges(count):
    """Merges of a BPE trained on the documentation, English and Chinese, and on rows of FEW that were not cut into words, so that ids
    tell where a text was cut."""
    chance = random.Random(3)
    rows = ["".join(chance.choice(FEW) for _ in range(20)) for _ in range(400)]
    texts = [(REPOSITORY / "docs" / name).read_text() for name in ("glossary.md", "STYLE.zh-CN.md", "STYLE.md")]
    characters = stand_ins()
    found = (word for text in texts for word in re.findall(r" ?\w+|\W", text))
    words = collections.Counter("".join(characters[b] for b in word.encode()) for word in found)
    words.update("".join(characters[b] for b in row.encode()) for row in rows)
    words, merges = {tuple(word): n for word, n in words.items()}, []
    while len(merges) < count:
        pairs = collections.Counter()
        for word, n in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += n
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        changed = {}
        for word, n in words.items():
            out = []
            for symbol in word:
                if out and (out[-1], symbol) == best:
                    out[-1] += symbol
                else:
                    out.append(symbol)
            changed[tuple(out)] = n
        words = changed
    return merges, [word for word in words if len(word) > 1][:40]


def tokenizer(kind, merges, whole):
    vocabulary = {}
    for token in [*stand_ins().values(), *("".join(merge) for merge in merges)]:
        vocabulary.setdefault(token, len(vocabulary))
    for word in whole if kind == "llama3" else []:  # words that no merge yields
        vocabulary.setdefault("".join(word), len(vocabulary))
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": kind == "gpt2"}
    split = {"type": "Split", "pattern": {"Regex": PATTERNS[kind]}, "behavior": "Isolated", "invert": False}
    before = level if kind == "gpt2" else {"type": "Sequence", "pretokenizers": [split, level]}
    added = [{"id": len(vocabulary) + i, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": True} for i, token in enumerate(ADDED)]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
            "normalizer": {"type": "NFC"} if kind == "qwen2" else None, "pre_tokenizer": before, "post_processor": level, "decoder": level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False, "ignore_merges": kind == "llama3", "vocab": vocabulary,
                      "merges": [" ".join(merge) for merge in merges]}}


def strings(count, chance):
    marks = [c for c in ASSIGNED if unicodedata.category(c)[0] == "M"]
    prose = [word for name in ("glossary.md", "STYLE.zh-CN.md") for word in (REPOSITORY / "docs" / name).read_text().split()]
    few = [*FEW, *ADDED, "<|end|"]
    for _ in range(count):
        parts = []
        for _ in range(chance.randrange(1, 14)):
            kind = chance.random()
            pool = few if kind < 0.5 else ASSIGNED if kind < 0.75 else prose if kind < 0.9 else marks
            parts.append(pool[int(chance.random() * len(pool))])
        yield "".join(parts)


def compare(path, plain, texts):
    given = b"".join(struct.pack("<I", len(text.encode())) + text.encode() for text in texts)
    out = subprocess.run([PROGRAM, path, "ids"], input=given, stdout=subprocess.PIPE, check=True).stdout
    at = 0
    for text in texts:
        count, = struct.unpack_from("<I", out, at)
        ids = list(struct.unpack_from(f"<{count}i", out, at + 4))
        at += 4 + 4 * count
        length, = struct.unpack_from("<I", out, at)
        back = out[at + 4:at + 4 + length].decode()
        at += 4 + length
        wanted, said = plain.encode(text)
        assert ids == wanted, f"{path.name}: {text!r}\n  ids      {ids}\n  expected {wanted}"
        assert back == said, f"{path.name}: {text!r} is decoded as {back!r}"
    assert at == len(out)


def main():
    merges, whole = learned_merges(900)
    with tempfile.TemporaryDirectory(prefix="phalanx-tokenizer-") as name:
        for place, kind in enumerate(PATTERNS):
            file, path = tokenizer(kind, merges, whole), pathlib.Path(name) / f"{kind}.json"
            path.write_text(json.dumps(file))
            plain, left, began = Plain(file, PATTERNS[kind]), STRINGS // 3 + (place < STRINGS % 3), time.monotonic()
            total, source = left, strings(left, random.Random(place))
            while left:
                texts = [next(source) for _ in range(min(left, 20000))]
                compare(path, plain, texts)
                left -= len(texts)
            print(f"{kind}: {total} strings, identical ids, decoded as they were; {time.monotonic() - began:.0f} s", flush=True)
        text = b"".join((REPOSITORY / "docs" / page).read_bytes() for page in ("commands.md", "cli.md", "glossary.md"))
        said = subprocess.run([PROGRAM, path, "speed"], input=text * 8, stdout=subprocess.PIPE, check=True).stdout.decode()
        print(f"{kind}, one core: {said}", end="")


main()
