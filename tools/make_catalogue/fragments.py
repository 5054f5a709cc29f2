"""The shortest constant words by which a message is told from all others."""
import math
import re
from collections import Counter, defaultdict

LEAST_BYTES = 12   # of a fragment; shorter ones stand in ordinary lines
LEAST_BITS = 20    # a message that nothing tells with so many bits is left out
ENOUGH_BITS = 32
MOST_BITS = 11     # of one word: a name alone, perhaps misread, does not identify a message
MOST_BYTES = 56    # of a fragment: to recognise a message, not to repeat it
MOST_WORDS = 8
COMMON = set('a an and are as at be by can cannot could did do does error expected failed failure for from got has have if in invalid is '
             'it must no not of on only or should than that the this to unexpected unknown use value was when with you your'.split())
ORDINARY = 'list index out of range\ntuple index out of range'  # what Python itself says, and so do scripts


def spans(piece):
    """Where words of the piece begin and end."""
    return [(m.start(), m.end()) for m in re.finditer(r'\S+', piece)]


def windows(piece):
    places = spans(piece)
    for i in range(len(places)):
        for j in range(i + 1, min(len(places), i + MOST_WORDS)):
            text = piece[places[i][0]:places[j][1]].strip('"\'`,.;()[]{}<>')
            if LEAST_BYTES <= len(text) <= MOST_BYTES:
                yield text


def words_of(text):
    return re.findall(r'[A-Za-z_][A-Za-z0-9_]*', text)


class Rarity:
    """How much a word tells: bits, by how often messages have it."""

    def __init__(self, messages):
        self.counts = Counter(word for pieces in messages for piece in pieces for word in words_of(piece.lower()))
        self.total = sum(self.counts.values())

    def bits(self, text):
        def of(word):
            return 1 if word in COMMON or len(word) < 3 else min(MOST_BITS, math.log2(self.total / self.counts[word]))

        return sum(of(word) for word in words_of(text.lower()))


def users_of(messages):
    """Which messages hold a fragment."""
    users = defaultdict(set)
    for key, pieces in messages.items():
        for piece in pieces:
            for text in windows(piece):
                users[text].add(key)
    return users


def longest_held(pieces, known):
    """Bytes of the longest known words that the pieces hold."""
    text = '\n'.join(pieces)
    return max((sum(map(len, words)) for words in known if all(word in text for word in words)), default=0)


def choose(messages, known=()):
    """messages: key -> pieces. known: the words of messages whose texts are not at hand. Returns key -> fragments: one where one is enough,
    else two; none where nothing tells it from others."""
    users = users_of(messages)
    taken = '\n'.join([ORDINARY, *(word for words in known for word in words)])
    rarity = Rarity([*messages.values(), *known])
    chosen = {}
    for key, pieces in messages.items():
        bits = {text: rarity.bits(text) for piece in pieces for text in windows(piece) if text not in taken}
        enough = [text for text in bits if bits[text] >= ENOUGH_BITS]
        if not enough:
            enough = [text for text in bits if bits[text] >= max(LEAST_BITS, max(bits.values()) - 1)]
        found = sorted(enough, key=lambda text: (len(text), text))
        if not found:
            continue
        least = longest_held(pieces, known) + 1
        alone = [text for text in found if len(users[text]) == 1 and len(text) >= least]
        shared = sorted((text for text in found if len(text) >= least), key=lambda text: (len(users[text]), len(text), text))
        words = alone[:1] or pair(found, users, pieces, least) or shared[:1]
        if words:
            chosen[key] = words
    return chosen


def pair(found, users, pieces, least):
    """Two fragments of at least so many bytes that only this message has both of, in their order; None: no two of the likeliest forty."""
    text = '\n'.join(pieces)
    best = None
    for i, a in enumerate(found[:40]):
        for b in found[i + 1:40]:
            if len(users[a] & users[b]) == 1 and a not in b and b not in a and len(a) + len(b) >= least:
                if best is None or len(a) + len(b) < len(best[0]) + len(best[1]):
                    best = [a, b]
    return sorted(best, key=text.find) if best else None
