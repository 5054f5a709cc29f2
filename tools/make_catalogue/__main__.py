#!/usr/bin/python3
"""What other software can say, derived from its sources: tools/make_catalogue [--add] OUT SAMPLES SOURCE=CHECKOUT ...

SOURCE is one of those in sources.py; CHECKOUT is FOLDER:PATTERN (git, every tag that matches the regular expression) or FOLDER@VERSION
(a plain folder, or the newest commit of a git folder). A source may be given several times, in the order of its releases.

Writes OUT/SOURCE.tsv: for each message the file and function that print it, its severity, the shortest words that distinguish it from all
other messages (two fragments are separated by "|"), the kinds of values in it, and the first and last release that has it. The texts are
not kept, and nothing of the checkouts is copied. SAMPLES gets some messages of each source with invented values, for the test of
coverage. Run it with all sources at once: words have to be unique among all of them.

With --add, where the checkouts of the other sources are not at hand, only the named sources are read and written: the other files of OUT,
and the samples of other sources in SAMPLES, stay as they are. Of the other sources only the words are known, not the texts. New words are
therefore no part of known ones, and longer than known ones that their own message contains, since a line belongs to the longest words that
it holds. A message that has no such words is left out.
"""
import os
import re
import sys
from dataclasses import replace

import c_sources
import fragments
import python_sources
import samples
import sources
from checkouts import Checkout, short, version_key


class Seen:
    def __init__(self, message, release):
        self.message, self.first, self.last = message, release, release


def messages_of(source, path, text):
    if path.endswith('.py'):
        return python_sources.messages(path, text)
    return c_sources.messages(path, text, sources.MACROS[source])


def identity(message):
    """Equal for one message over releases: drift in blanks, case, quotes and " :" is none."""
    text = re.sub(r'\0[a-z]+\0', '\0', message.template.lower())
    return re.sub(r'[\s"\'`]+', ' ', text).replace(' :', ':').strip()


def read(source, checkouts, seen):
    newest = ''
    for checkout in checkouts:
        for release in checkout.releases():
            newest = release
            for path, text in checkout.files(release, sources.FILES[source]):
                if any(re.search(pattern, path) for pattern in sources.WITHOUT):
                    continue
                for message in messages_of(source, path, text):
                    known = seen.setdefault((source, identity(message)), Seen(message, release))
                    known.message, known.last = message, release
            print(f'{source} {release}: {sum(key[0] == source for key in seen)} messages', file=sys.stderr)
    return newest


def row(variants, words, newest):
    """variants: of one message that changed over releases where no words tell it; they share the first and the last release."""
    latest = max(variants, key=lambda seen: version_key(seen.last))
    message = latest.message
    file = sources.short_path(message.file)
    first = min((seen.first for seen in variants), key=version_key)
    last = '' if latest.last == newest else short(latest.last)
    slots = ' '.join(dict.fromkeys(kind for kind in message.slots() if kind != 'value'))
    return '\t'.join([file, message.function, message.severity, '|'.join(words), slots, short(first), last])


def known_words(out, given):
    """The words of the sources that are not read now, as their files in OUT have them."""
    for name in sorted(os.listdir(out)):
        if not name.endswith('.tsv') or name[:-len('.tsv')] in given:
            continue
        with open(os.path.join(out, name), encoding='utf-8') as file:
            lines = [line for line in file if not line.startswith('#')]
        yield from (line.split('\t')[3].split('|') for line in lines[1:])


def write_catalogue(out, source, newest, seen, chosen):
    variants = {}
    for key, words in chosen.items():
        if key[0] == source and all('|' not in w and '\t' not in w for w in words):
            variants.setdefault(tuple(words), []).append(seen[key])
    rows = [row(same, words, newest) for words, same in variants.items()]
    with open(os.path.join(out, source + '.tsv'), 'w', encoding='utf-8') as file:
        file.write(f'# Made by tools/make_catalogue. Newest release: {short(newest)}; its messages have no "last".\n')
        file.write('file:word\tfunction:text\tseverity:error|warning|info\twords:text\tslots:text\tfirst:text\tlast:text\n')
        file.write(''.join(line + '\n' for line in sorted(rows)))
    total = sum(key[0] == source for key in seen)
    print(f'{source}: {len(rows)} rows of {total} messages', file=sys.stderr)


def main():
    adding = sys.argv[1] == '--add'
    out, told, *arguments = sys.argv[2:] if adding else sys.argv[1:]
    given = {}
    for argument in arguments:
        source, _, checkout = argument.partition('=')
        given.setdefault(source, []).append(Checkout(checkout))
    seen, newest = {}, {}
    for source, checkouts in given.items():
        newest[source] = read(source, checkouts, seen)
    known = list(known_words(out, given)) if adding else []
    chosen = fragments.choose({key: s.message.pieces() for key, s in seen.items()}, known)
    for source in given:
        write_catalogue(out, source, newest[source], seen, chosen)
    messages = [(key[0], replace(s.message, file=sources.short_path(s.message.file))) for key, s in seen.items()]
    samples.write(told, messages, samples.of_others(told, given) if adding else [])


main()
