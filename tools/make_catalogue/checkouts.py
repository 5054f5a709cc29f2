"""Files of a checkout, release by release: from git tags, or from a plain folder."""
import fnmatch
import os
import re
import subprocess


def version_key(release):
    """v2.4.8-1 < v2.30.7-1; a prefix such as "core_v" does not count."""
    return [int(number) for number in re.findall(r'\d+', release)]


def short(release):
    """v2.30.7-1 -> 2.30.7: what a log can name."""
    found = re.search(r'\d+(\.\d+)*', release)
    return found.group(0) if found else release


def _git(folder, *arguments):
    return subprocess.run(['git', '-C', folder, *arguments], check=True, capture_output=True).stdout


class Checkout:
    """FOLDER, read at each of its git tags that match PATTERN; FOLDER@VERSION is a plain folder, or the newest commit, of that release."""

    def __init__(self, text):
        folder, _, self.version = text.partition('@')
        self.folder, _, self.pattern = folder.partition(':')

    def releases(self):
        if self.version:
            return [self.version]
        tags = _git(self.folder, 'tag').decode().split()
        return sorted((tag for tag in tags if re.fullmatch(self.pattern, tag)), key=version_key)

    def files(self, release, patterns):
        """(path, text) of every file whose path fits one of the patterns."""
        if self.version and not os.path.exists(os.path.join(self.folder, 'HEAD')):
            yield from self._plain(patterns)
            return
        tree = 'HEAD' if self.version else release
        names = _git(self.folder, 'ls-tree', '-r', '--name-only', tree).decode().splitlines()
        wanted = [name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
        reader = subprocess.Popen(['git', '-C', self.folder, 'cat-file', '--batch'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for name in wanted:
            reader.stdin.write(f'{tree}:{name}\n'.encode())
            reader.stdin.flush()
            head = reader.stdout.readline().split()
            if len(head) != 3:
                continue
            text = reader.stdout.read(int(head[2]) + 1)[:-1]
            yield name, text.decode('utf-8', 'replace')
        reader.stdin.close()
        reader.wait()

    def _plain(self, patterns):
        for folder, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), self.folder)
                if any(fnmatch.fnmatch(path, pattern) for pattern in patterns):
                    with open(os.path.join(self.folder, path), encoding='utf-8', errors='replace') as file:
                        yield path, file.read()
