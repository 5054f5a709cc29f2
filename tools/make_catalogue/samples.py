"""Messages as programs print them, with plausible values, for the test of coverage: a fixed number of each source, chosen by hash."""
import hashlib
import re

VALUES = {'errno': ['11', 'Connection refused', 'Connection timed out'], 'rank': ['3', '12'], 'interface': ['eth0', 'ib0'],
          'address': ['10.0.0.2<41312>', '10.0.0.7<29500>'], 'host': ['gpu01', 'gpu07'], 'path': ['/data/a/b.json', '/job/out'],
          'port': ['29500'], 'size': ['4096', '131072'], 'duration': ['600', '1800000'], 'status': ['5', '12'], 'device': ['0', 'mlx5_0'],
          'version': ['2.21.5', '12.4'], 'value': ['1', 'x', '8']}
EACH = 40
MOST_BYTES = 160
USER = re.compile(r'connect|timeout|timed out|memory|version|device|rank|address|interface|file|found|support|fail|must|should|require|'
                  r'invalid|unable|cannot|missing|config', re.I)


def number(text):
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)


def filled(template):
    parts = template.split('\0')
    for i in range(1, len(parts), 2):
        choices = VALUES[parts[i]]
        parts[i] = choices[number(template + str(i)) % len(choices)]
    return ''.join(parts).strip().split('\n')[0]


def of_others(path, given):
    """The lines of a file of samples that belong to sources that are not given."""
    with open(path, encoding='utf-8') as file:
        return [line for line in file if not line.startswith('#') and line.split('\t')[0] not in given]


def write(path, messages, others):
    """messages: (source, Message) of all sources that were read. others: lines for the sources that were not."""
    lines = list(others)
    for source in sorted({source for source, _ in messages}):
        texts = {(m.file, filled(m.template)) for s, m in messages if s == source and m.severity == 'error'}
        told = [(f, t) for f, t in texts if len(t.split()) >= 5 and len(t) <= MOST_BYTES and USER.search(t) and t.isprintable()]
        for name, text in sorted(sorted(told, key=lambda told: number(told[1]))[:EACH]):
            lines.append(f'{source}\t{name}\t{text}\n')
    with open(path, 'w', encoding='utf-8') as file:
        file.write('# Messages of other software with invented values, for catalogue_test.cc. Made by tools/make_catalogue.\n')
        file.write(''.join(sorted(lines, key=lambda line: line.split('\t')[0])))
