"""Builds environments for tests: what an installer would have left at a given prefix. The same call at another prefix gives the reference
for a moved one.

The conda layout follows conda's own documents and sources (conda-meta/*.json as core/prefix_data.py writes them, prefix_placeholder and
file_mode as in info/paths.json): programs are compiled with a placeholder of 255 bytes, then installed as conda installs them.
"""
import base64
import hashlib
import json
import os
import subprocess
import sys

PLACEHOLDER = '/' + ('h_env_placehold_' * 16)[:254]
PYTHON = 'lib/python%d.%d' % sys.version_info[:2]
SITE = PYTHON + '/site-packages'

PROGRAM = '''
#include <stdio.h>
static const char prefix[] = "%(p)s";
static const char both[] = "%(p)s/lib:%(p)s/lib64";
static const char neighbour[] = "untouched";
int main(void) {
  volatile const char* keep = neighbour;
  printf("%%s\\n%%s\\n%%s\\n", prefix, both, (const char*)keep);
  return 0;
}
'''


def installed_binary(data, prefix):
    """As conda does (PrefixReplaceLinkAction): each C string with the placeholder is rewritten and filled with NULs."""
    old, new, out, at = PLACEHOLDER.encode(), prefix.encode(), bytearray(data), 0
    while True:
        at = out.find(old, at)
        if at < 0:
            return bytes(out)
        end = out.find(b'\0', at)
        text = bytes(out[at:end]).replace(old, new)
        out[at:end] = text + b'\0' * (end - at - len(text))
        at = end


class Conda:
    def __init__(self, root, prefix, compiled, neighbour='/elsewhere', padding_packages=300):
        """root: where the files are written; prefix: what they name; compiled: bytes of PROGRAM, compiled with the placeholder;
        neighbour: a path whose beginning or end some files name as well."""
        self.root, self.prefix, self.neighbour, self.records = root, prefix, neighbour, {}
        python = os.path.realpath(sys.executable)
        self.link('python', 'bin/python3', python)
        self.link('python', 'bin/python', 'python3')
        self.text('tool', 'bin/tool', '#!%(p)s/bin/python\nimport sys\nprint(sys.argv[0])\n', mode=0o755)
        self.text('tool', 'bin/shell-tool', '#!/bin/sh\necho %(p)s/share\n', mode=0o755)
        self.text('tool', 'lib/pkgconfig/tool.pc', 'prefix=%(p)s\nlibdir=${prefix}/lib\nCflags: -I%(p)s/include -L%(p)s/lib\n')
        self.text('tool', 'share/with blank/config', 'home = "%(p)s"\nother = "%(n)s2"\nthird = "/mnt%(n)s"\n')
        self.binary('compiled', 'bin/where', compiled)
        self.link('compiled', 'bin/where-too', self.prefix + '/bin/where')
        self.text('python', PYTHON + '/_sysconfigdata__linux_.py', "build_time_vars = {'prefix': '%(p)s',\n 'LIBDIR': '%(p)s/lib'}\n")
        self.plain('tool', 'etc/profile', 'nothing of interest\n')
        self.plain('tool', 'etc/conda/activate.d/tool.sh', 'export TOOL_HOME=$CONDA_PREFIX/share\n')
        self.pip('torch', '2.1.0', ['torchrun', 'convert'])
        self.editable_pth('llamafactory', prefix + '/src/llamafactory/src')
        self.editable_finder('other_tool', prefix + '/src/other')
        for i in range(padding_packages):
            self.text('pad%03d' % i, 'share/pad/%03d.conf' % i, 'where=%(p)s/share/pad\n')
        self.write_records()

    def put(self, path, data, mode=0o644):
        whole = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, 'wb') as file:
            file.write(data)
        os.chmod(whole, mode)

    def entry(self, package, path, data, packaged, **more):
        """size_in_bytes is that of the file in the package, before its placeholder was replaced."""
        self.records.setdefault(package, []).append(
            dict(_path=path, path_type='hardlink', sha256_in_prefix=hashlib.sha256(data).hexdigest(), size_in_bytes=packaged, **more))

    def text(self, package, path, template, mode=0o644):
        data = (template % {'p': self.prefix, 'n': self.neighbour}).encode()
        packaged = len(template % {'p': PLACEHOLDER, 'n': self.neighbour})
        self.put(path, data, mode)
        self.entry(package, path, data, packaged, file_mode='text', prefix_placeholder=PLACEHOLDER)

    def binary(self, package, path, compiled):
        data = installed_binary(compiled, self.prefix)
        self.put(path, data, 0o755)
        self.entry(package, path, data, len(compiled), file_mode='binary', prefix_placeholder=PLACEHOLDER)

    def plain(self, package, path, text):
        self.put(path, text.encode())
        self.entry(package, path, text.encode(), len(text))

    def link(self, package, path, target):
        whole = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        os.symlink(target, whole)
        self.records.setdefault(package, []).append(dict(_path=path, path_type='softlink'))

    def pip(self, name, version, scripts):
        lines, info = [], '%s/%s-%s.dist-info' % (SITE, name, version)
        for script in scripts:
            path = 'bin/' + script
            data = ('#!%s/bin/python\n# -*- coding: utf-8 -*-\nimport sys\nprint(sys.executable)\n' % self.prefix).encode()
            self.put(path, data, 0o755)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
            lines.append('../../../%s,sha256=%s,%d' % (path, digest, len(data)))
        self.put('%s/%s/__init__.py' % (SITE, name), b'version = %r\n' % version.encode())
        self.put(info + '/METADATA', ('Name: %s\nVersion: %s\n' % (name, version)).encode())
        self.put(info + '/RECORD', ('\n'.join(lines + ['%s-%s.dist-info/RECORD,,' % (name, version)]) + '\n').encode())

    def editable_pth(self, name, source):
        self.put(os.path.relpath(source, self.prefix) + '/' + name + '/__init__.py', b'here = __file__\n')
        self.put('%s/__editable__.%s-0.1.pth' % (SITE, name), (source + '\n').encode())
        info = '%s/%s-0.1.dist-info' % (SITE, name)
        self.put(info + '/METADATA', ('Name: %s\nVersion: 0.1\n' % name).encode())
        self.put(info + '/direct_url.json', json.dumps({'dir_info': {'editable': True}, 'url': 'file://' + source}).encode())

    def editable_finder(self, name, source):
        self.put(os.path.relpath(source, self.prefix) + '/' + name + '.py', b'here = __file__\n')
        self.put('%s/__editable___%s_finder.py' % (SITE, name),
                 ("MAPPING = {'%s': '%s/%s.py'}\nimport importlib.util, sys\n"
                  'class Finder:\n  @classmethod\n  def find_spec(cls, name, path=None, target=None):\n'
                  '    if name in MAPPING: return importlib.util.spec_from_file_location(name, MAPPING[name])\n'
                  'def install(): sys.meta_path.append(Finder)\n' % (name, source, name)).encode())
        self.put('%s/__editable__.%s.pth' % (SITE, name), ('import __editable___%s_finder as f; f.install()\n' % name).encode())

    def write_records(self):
        for name, paths in self.records.items():
            record = dict(name=name, version='1.0', build='h0_0', files=[path['_path'] for path in paths],
                          paths_data=dict(paths_version=1, paths=paths))
            self.put('conda-meta/%s-1.0-h0_0.json' % name, json.dumps(record, indent=2, sort_keys=True).encode())
        self.put('conda-meta/history', b'')


def compile_program(folder):
    source, program = os.path.join(folder, 'where.c'), os.path.join(folder, 'where')
    with open(source, 'w') as file:
        file.write(PROGRAM % {'p': PLACEHOLDER})
    subprocess.run(['cc', '-O1', '-o', program, source], check=True)
    with open(program, 'rb') as file:
        return file.read()
