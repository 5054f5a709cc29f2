"""phalanx env on real environments: moved with tar to a shorter, an equal and a longer place, repaired, compared with one that was made
there, and used."""
import fcntl
import filecmp
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

from conda_env import SITE, Conda, compile_program

PHALANX = sys.argv.pop(1)
ENGLISH = dict(os.environ, PHALANX_LANG='en', PYTHONNOUSERSITE='1', PYTHONDONTWRITEBYTECODE='1')


def phalanx(*words):
    return subprocess.run([PHALANX, 'env', *words], env=ENGLISH, capture_output=True, text=True)


def output(*words, **more):
    return subprocess.run(words, check=True, capture_output=True, text=True, env=ENGLISH, **more).stdout


def tar_to(source, target):
    """As the field note moves it: tar on one side, tar on the other."""
    os.makedirs(target)
    subprocess.run(['sh', '-c', 'tar -C "$1" -cf - . | tar -C "$2" -xf -', 'sh', source, target], check=True)


def write(path, text, mode=0o644):
    with open(path, 'w') as file:
        file.write(text)
    os.chmod(path, mode)


def differences(a, b):
    """Paths whose type, mode, link or bytes differ."""
    out = []
    for one, other in ((a, b), (b, a)):
        for folder, _, files in os.walk(one):
            for name in files:
                path = os.path.relpath(os.path.join(folder, name), one)
                x, y = os.path.join(one, path), os.path.join(other, path)
                if not os.path.lexists(y) or os.path.islink(x) != os.path.islink(y):
                    out.append(path)
                elif os.path.islink(x):
                    out += [path] if os.readlink(x) != os.readlink(y) else []
                elif os.stat(x).st_mode != os.stat(y).st_mode or not filecmp.cmp(x, y, shallow=False):
                    out.append(path)
    return sorted(set(out))


class Environments(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='phalanx-env-test-')
        cls.compiled = compile_program(cls.folder)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def place(self, length):
        """A path of `length` bytes below the test's folder."""
        stem = self.folder + '/'
        while length - len(stem) > 200:
            stem += 'd' * 100 + '/'
        return stem + 'e' * (length - len(stem))

    def use(self, env):
        self.assertEqual(output(env + '/bin/where').split('\n')[:3], [env, '%s/lib:%s/lib64' % (env, env), 'untouched'])
        self.assertEqual(output(env + '/bin/where-too').split('\n')[0], env)
        self.assertEqual(output(env + '/bin/shell-tool').strip(), env + '/share')
        self.assertEqual(output(env + '/bin/torchrun').strip(), env + '/bin/python')
        self.assertEqual(output(env + '/bin/tool').strip(), env + '/bin/tool')
        where = 'import site; site.addsitedir(%r); import llamafactory, other_tool, torch; print(llamafactory.here, other_tool.here)'
        self.assertEqual(output(env + '/bin/python', '-c', where % (env + '/' + SITE)).split(),
                         [env + '/src/llamafactory/src/llamafactory/__init__.py', env + '/src/other/other_tool.py'])

    def test_a_conda_environment_is_the_one_installed_there(self):
        old = self.place(80)
        Conda(old, old, self.compiled, neighbour=old)
        self.use(old)
        for length in (60, 80, 110, 240):
            new = self.place(length) if length != 80 else self.place(80)[:-1] + 'f'
            with self.subTest(length=length):
                tar_to(old, new)
                Conda(new + '.reference', new, self.compiled, neighbour=old)
                if length == 110:  # the former place is gone, as on another machine
                    os.rename(old, old + '.away')
                shown = json.loads(phalanx('show', '--json', new).stdout)
                self.assertEqual(shown['old_prefixes'], [old])
                self.assertEqual((shown['kind'], len(shown['packages'])), ('conda', 305))
                if length == 110:
                    self.assertEqual(phalanx('verify', new).returncode, 3)
                done = phalanx('rehome', new)
                self.assertEqual(done.returncode, 0, done.stderr)
                verified = phalanx('verify', new)
                self.assertEqual((verified.returncode, 'nothing is wrong' in verified.stdout), (0, True), verified.stdout)
                left = differences(new, new + '.reference')
                if length < 127:
                    self.assertEqual(left, [])
                else:  # first lines that are too long are pip's two lines; records follow them
                    self.assertEqual([path for path in left if not path.startswith('conda-meta/') and not path.endswith('/RECORD')],
                                     ['bin/convert', 'bin/tool', 'bin/torchrun'])
                self.use(new)
                again = phalanx('rehome', new)
                self.assertEqual((again.returncode, 'nothing to do' in again.stdout), (0, True), again.stdout + again.stderr)
                if length == 110:
                    os.rename(old + '.away', old)
                shutil.rmtree(new)
                shutil.rmtree(new + '.reference')

    def test_a_place_longer_than_the_placeholder_is_refused_before_anything_changes(self):
        old, new = self.place(70), self.place(300)
        Conda(old, old, self.compiled, padding_packages=0)
        tar_to(old, new)
        refused = phalanx('rehome', new)
        self.assertEqual(refused.returncode, 2)
        self.assertIn('bin/where: a path in it has no room to grow', refused.stderr)
        self.assertIn('255 bytes', refused.stderr)
        self.assertEqual(differences(old, new), [])
        partly = phalanx('rehome', '--partial', new)
        self.assertEqual(partly.returncode, 1)
        self.assertEqual(output(new + '/bin/torchrun').strip(), new + '/bin/python')

    def test_a_venv_with_compiled_packages(self):
        old, new = self.folder + '/venv', self.folder + '/moved venv'
        output(sys.executable, '-m', 'venv', '--system-site-packages', old)
        tar_to(old, new)
        os.rename(old, old + '.away')
        done = phalanx('rehome', new)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(output(new + '/bin/python', '-c', 'import sys; print(sys.prefix)').strip(), new)
        self.assertIn(new, output(new + '/bin/pip', '--version'))
        self.assertEqual(output('bash', '-c', '. "$1/bin/activate" && command -v python', 'bash', new).strip(), new + '/bin/python')
        verified = phalanx('verify', new)
        self.assertEqual((verified.returncode, 'nothing is wrong' in verified.stdout), (0, True), verified.stdout)
        output(new + '/bin/python', '-c', 'import ssl, ctypes, sqlite3')
        checked = subprocess.run([new + '/bin/pip', 'check'], capture_output=True, text=True, env=ENGLISH)
        self.assertIn(checked.returncode, (0, 1), checked.stderr)

    def relocatable_python(self, place):
        """A Python that runs wherever it lies, as uv and pyenv install one: Debian's own files in one folder. Its name, "python3.11"."""
        name = 'python%d.%d' % sys.version_info[:2]
        os.makedirs(place + '/bin')
        shutil.copy('/usr/bin/' + name, place + '/bin/' + name)
        os.symlink(name, place + '/bin/python3')
        shutil.copytree('/usr/lib/' + name, place + '/lib/' + name, symlinks=True,
                        ignore=shutil.ignore_patterns('__pycache__', 'test', 'config-*', 'sitecustomize.py'))
        os.makedirs(place + '/lib/' + name + '/site-packages')
        write(place + '/lib/' + name + '/site-packages/of_the_base.py', 'x = 1')
        write(place + '/bin/other-tool', 'secret')
        write(place + '/.secret', 'secret')
        write(place + '/lib/' + name + '/built_at.py', 'PREFIX = "%s"\n' % place)
        return name

    def test_a_venv_brings_a_python_that_can_lie_anywhere(self):
        base, old, new = self.folder + '/pythons/own', self.folder + '/with-base', self.folder + '/arrived/with base'
        name = self.relocatable_python(base)
        os.symlink('own', self.folder + '/pythons/default')  # uv's folders have such a second name
        output(self.folder + '/pythons/default/bin/' + name, '-m', 'venv', '--without-pip', old)
        write(old + '/bin/hello', '#!%s/bin/python\nimport sys; print(sys.prefix)\n' % old, 0o755)
        packed = phalanx('pack', old, '-o', self.folder + '/with-base.tar.zst')
        self.assertEqual(packed.returncode, 0, packed.stderr)
        self.assertIn('the Python of the venv, %s/pythons/own, comes along as .python (' % self.folder, packed.stderr)
        os.rename(self.folder + '/pythons', self.folder + '/pythons.away')
        os.rename(old, old + '.away')
        done = phalanx('unpack', self.folder + '/with-base.tar.zst', new)
        self.assertEqual((done.returncode, 'nothing is wrong' in done.stdout), (0, True), done.stdout + done.stderr)
        self.assertEqual(output(new + '/bin/hello').strip(), new)
        told = output(new + '/bin/python', '-c', 'import sys, os, json, built_at; '
                      'print(json.dumps([sys.prefix, sys.base_prefix, os.__file__, built_at.PREFIX, os.path.realpath(sys.executable)]))')
        library = '%s/.python/lib/%s/' % (new, name)
        self.assertEqual(json.loads(told), [new, new + '/.python', library + 'os.py', new + '/.python', new + '/.python/bin/' + name])
        self.assertEqual(sorted(os.listdir(new + '/.python')), ['bin', 'lib'], 'and nothing else that lies there')
        self.assertEqual(sorted(os.listdir(new + '/.python/bin')), ['python3', name])
        self.assertFalse(os.path.exists(library + 'site-packages'), 'a venv does not use them')
        # What has arrived is moved like any other: its Python lies within.
        again = self.folder + '/moved-again'
        self.assertEqual(phalanx('pack', new, '-o', self.folder + '/again.tar.zst').returncode, 0)
        os.rename(new, new + '.away')
        done = phalanx('unpack', self.folder + '/again.tar.zst', again)
        self.assertEqual((done.returncode, 'nothing is wrong' in done.stdout), (0, True), done.stdout + done.stderr)
        self.assertEqual(output(again + '/bin/python', '-c', 'import sys; print(sys.base_prefix)').strip(), again + '/.python')
        self.assertEqual(subprocess.run(['grep', '-rlI', self.folder + '/pythons', again], capture_output=True, text=True).stdout, '')
        third = self.folder + '/moved-by-hand'
        os.rename(again, third)
        done = phalanx('rehome', third)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        verified = phalanx('verify', third)
        self.assertEqual((verified.returncode, 'nothing is wrong' in verified.stdout), (0, True), verified.stdout)
        self.assertEqual(output(third + '/bin/hello').strip(), third)

    def test_places_that_shells_and_literals_quote(self):
        made = self.folder + '/quoted'
        output(sys.executable, '-m', 'venv', '--without-pip', made)
        site = 'lib/python%d.%d/site-packages' % sys.version_info[:2]
        os.makedirs(made + '/src/tool')
        # As setuptools writes it: repr() of a dictionary.
        write('%s/%s/__editable___tool_1_0_finder.py' % (made, site), 'MAPPING = %r\n' % {'tool': made + '/src/tool'})
        write('%s/bin/hello' % made, '#!%s/bin/python\nprint("hello")\n' % made, 0o755)
        tar_to(made, made + '.before')
        use = 'import __editable___tool_1_0_finder as f; print(f.MAPPING["tool"])'
        for name in ("o'brien", 'a"b\\c', 'a b', 'a:b', 'quoted'):  # the last is the first again
            old, new = made, self.folder + '/' + name
            os.rename(old, new)
            with self.subTest(place=name):
                done = phalanx('rehome', new)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertEqual(output(new + '/bin/python', '-I', '-B', '-c', use).strip(), new + '/src/tool')
                self.assertEqual(output(new + '/bin/hello').strip(), 'hello')
                activated = subprocess.run(['bash', '-c', '. "$1/bin/activate" && command -v python', 'bash', new],
                                           capture_output=True, text=True)
                self.assertEqual(activated.stdout.strip() == new + '/bin/python', ':' not in name, 'PATH separates by colons')
                self.assertEqual('has a colon' in done.stderr, ':' in name, done.stderr)
                verified = phalanx('verify', new)
                self.assertEqual((verified.returncode, 'nothing is wrong' in verified.stdout), (0, True), verified.stdout)
            made = new
        left = [path for path in differences(made, made + '.before') if not path.startswith('bin/activate')]
        self.assertEqual(left, [], 'those may be quoted otherwise now')

    def test_python_does_not_go_on_with_what_it_had_compiled(self):
        old, new, unpacked = (self.folder + '/compiled' + digit for digit in '123')
        output(sys.executable, '-m', 'venv', '--without-pip', old)
        module = old + '/lib/python%d.%d/site-packages/conf.py' % sys.version_info[:2]
        write(module, 'HERE = "%s/share"\n' % old)
        compiling = {name: value for name, value in ENGLISH.items() if name != 'PYTHONDONTWRITEBYTECODE'}
        subprocess.run([old + '/bin/python', '-m', 'compileall', '-q', module], check=True, env=compiling)
        self.assertTrue(os.path.isdir(os.path.dirname(module) + '/__pycache__'))
        self.assertEqual(phalanx('pack', old, '-o', self.folder + '/compiled.tar.zst').returncode, 0)
        subprocess.run(['cp', '-a', old, new], check=True)
        done = phalanx('rehome', new)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(phalanx('unpack', self.folder + '/compiled.tar.zst', unpacked).returncode, 0)
        for place in (new, unpacked):
            self.assertEqual(output(place + '/bin/python', '-c', 'import conf; print(conf.HERE)').strip(), place + '/share')

    def test_an_interrupted_repair_is_continued_by_the_same_command(self):
        old, new = self.folder + '/whole', self.folder + '/half'
        output(sys.executable, '-m', 'venv', '--without-pip', old)
        subprocess.run(['cp', '-a', old, new], check=True)
        subprocess.run('sed -i "s|%s|%s|" %s/bin/activate*' % (old, new, new), shell=True, check=True)
        write(new + '/.phalanx-rehome.json', json.dumps({'schema': 1, 'new_prefix': new, 'old_prefixes': [old], 'changes': []}), 0o600)
        done = phalanx('rehome', new)
        self.assertEqual((done.returncode, 'an interrupted repair is continued' in done.stderr), (0, True), done.stdout + done.stderr)
        verified = phalanx('verify', new)
        self.assertEqual((verified.returncode, 'nothing is wrong' in verified.stdout), (0, True), verified.stdout)

    def test_a_python_of_another_version_is_found(self):
        env = self.folder + '/other-version'
        output(sys.executable, '-m', 'venv', '--without-pip', env)
        with open(env + '/pyvenv.cfg') as file:
            config = file.read()
        write(env + '/pyvenv.cfg', config.replace('version = 3.', 'version = 3.9'))
        verified = phalanx('verify', env)
        self.assertEqual(verified.returncode, 3, verified.stdout)
        self.assertIn('Python %d.%d != 3.9' % sys.version_info[:2], verified.stdout)

    def test_the_finder_of_an_editable_install_leads_to_what_came_along(self):
        project, old, new = self.folder + '/project', self.folder + '/with-finder', self.folder + '/found'
        os.makedirs(project + '/proj')
        write(project + '/proj/__init__.py', 'HOME = "%s"\n' % old)
        output(sys.executable, '-m', 'venv', '--without-pip', old)
        site = '/lib/python%d.%d/site-packages/' % sys.version_info[:2]
        write(old + site + '_editable_skbc_proj.py', 'MAP = {"proj": "%s/proj/__init__.py"}\n' % project)
        os.makedirs(old + site + 'proj-1.dist-info')
        write(old + site + 'proj-1.dist-info/METADATA', 'Name: proj\n')
        write(old + site + 'proj-1.dist-info/direct_url.json', json.dumps({'url': 'file://' + project, 'dir_info': {'editable': True}}))
        self.assertEqual(phalanx('pack', old, '-o', self.folder + '/finder.tar.zst').returncode, 0)
        os.rename(project, project + '.away')
        done = phalanx('unpack', self.folder + '/finder.tar.zst', new)
        self.assertEqual((done.returncode, 'nothing is wrong' in done.stdout), (0, True), done.stdout + done.stderr)
        with open(new + site + '_editable_skbc_proj.py') as file:
            self.assertEqual(file.read(), 'MAP = {"proj": "%s/src/project/proj/__init__.py"}\n' % new)
        with open(new + '/src/project/proj/__init__.py') as file:
            self.assertEqual(file.read(), 'HOME = "%s"\n' % new)

    def test_a_venv_whose_python_stays_says_why(self):
        base, old = self.folder + '/conda-base', self.folder + '/of-conda'
        name = self.relocatable_python(base)
        os.makedirs(base + '/conda-meta')
        output(base + '/bin/' + name, '-m', 'venv', '--without-pip', old)
        packed = phalanx('pack', old, '-o', self.folder + '/of-conda.tar.gz')
        self.assertEqual(packed.returncode, 0, packed.stderr)
        self.assertIn('has to be on the other machine too, at the same path: %s/bin; it does not come along because it belongs to a conda '
                      'environment' % base, packed.stderr)

    def test_packed_and_unpacked_is_the_one_installed_there(self):
        old = self.place(80) + '.packed'
        Conda(old, old, self.compiled, neighbour=old, padding_packages=20)
        for end, length in (('tar.zst', 60), ('tar.gz', 100), ('run', 90)):
            with self.subTest(end=end):
                file, new = '%s/packed.%s' % (self.folder, end), self.place(length) + '.unpacked'
                done = phalanx('pack', old, '-o', file)
                self.assertEqual(done.returncode, 0, done.stderr)
                Conda(new + '.reference', new, self.compiled, neighbour=old, padding_packages=20)
                os.rename(old, old + '.away')  # as on another machine
                if end == 'run':
                    plain = {'PATH': '/usr/bin:/bin', 'PHALANX_LANG': 'en', 'TMPDIR': self.folder}
                    done = subprocess.run(['/bin/sh', file, new], env=plain, capture_output=True, text=True)
                else:
                    done = phalanx('unpack', file, new)
                self.assertEqual((done.returncode, 'nothing is wrong' in done.stdout), (0, True), done.stdout + done.stderr)
                self.assertEqual(differences(new, new + '.reference'), [])
                self.use(new)
                self.assertEqual([name for name in os.listdir(self.folder) if name.startswith(('phalanx-env.', '.phalanx-'))], [])
                again = phalanx('unpack', file, new)
                self.assertEqual(again.returncode, 2)
                self.assertIn(new + ' already exists', again.stderr)
                os.rename(old + '.away', old)
                shutil.rmtree(new)
        named = phalanx('pack', old, '-o', self.folder + '/packed.zip')
        self.assertEqual(named.returncode, 2)
        self.assertIn('does not say how to pack', named.stderr)

    def test_archives_of_tar_are_unpacked_and_hostile_ones_refused(self):
        old, new = self.place(70) + '.tar', self.place(90) + '.tar'
        Conda(old, old, self.compiled, neighbour=old, padding_packages=0)
        file = self.folder + '/by-tar.tar.gz'
        subprocess.run(['tar', '-C', os.path.dirname(os.path.dirname(old)), '-czf', file,
                        os.path.relpath(old, os.path.dirname(os.path.dirname(old)))], check=True)
        os.rename(old, old + '.away')
        done = phalanx('unpack', file, new)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.use(new)
        with tarfile.open(self.folder + '/hostile.tar', 'w') as hostile:
            link = tarfile.TarInfo('llm/out')
            link.type, link.linkname = tarfile.SYMTYPE, self.folder
            hostile.addfile(link)
            hostile.addfile(tarfile.TarInfo('llm/out/escaped'))
        refused = phalanx('unpack', self.folder + '/hostile.tar', self.folder + '/hostile')
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn('a path through a link or a file', refused.stderr)
        for name in ('escaped', 'hostile', '.phalanx-unpack.hostile'):
            self.assertFalse(os.path.lexists(self.folder + '/' + name), name)

    def test_a_second_unpack_touches_nothing_of_the_first(self):
        old, new = self.folder + '/first', self.folder + '/second'
        output(sys.executable, '-m', 'venv', '--without-pip', old)
        file = self.folder + '/first.tar.zst'
        self.assertEqual(phalanx('pack', old, '-o', file).returncode, 0)
        part = self.folder + '/.phalanx-unpack.second'
        os.mkdir(part, 0o700)
        open(part + '/of-the-first', 'w').close()
        first = os.open(part, os.O_RDONLY)
        fcntl.flock(first, fcntl.LOCK_EX)
        try:
            refused = phalanx('unpack', file, new)
            self.assertEqual(refused.returncode, 3, refused.stderr)
            self.assertIn('another phalanx is unpacking to ' + new, refused.stderr)
            self.assertEqual(os.listdir(part), ['of-the-first'])
        finally:
            os.close(first)
        done = phalanx('unpack', file, new)  # what a killed one has left is in nobody's way
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(os.path.exists(part))

    def test_packing_writes_through_no_link_of_others(self):
        old, file, victim = self.folder + '/linked', self.folder + '/linked.tar.gz', self.folder + '/victim'
        output(sys.executable, '-m', 'venv', '--without-pip', old)
        with open(victim, 'w') as f: f.write('mine')
        os.symlink(victim, file + '.part')
        os.symlink(victim, file)
        before = set(os.listdir(self.folder))
        done = phalanx('pack', old, '-o', file)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(victim) as f: self.assertEqual(f.read(), 'mine')
        self.assertFalse(os.path.islink(file))
        self.assertEqual(os.stat(file).st_mode & 0o777, 0o644)
        self.assertEqual(set(os.listdir(self.folder)), before)

    def test_what_is_typed_wrong(self):
        for words, said in ((('show', self.folder), 'is no environment of Python'), (('show', 'no-such-name'), 'no environment is named'),
                            (('mend', 'x'), 'env cannot'), ((), 'env needs to know'), (('show',), 'takes one environment')):
            failed = phalanx(*words)
            self.assertEqual(failed.returncode, 2, failed.stderr)
            self.assertIn(said, failed.stderr)

    def test_a_launcher_without_the_program(self):
        alone = os.path.join(self.folder, 'phalanx')
        shutil.copy(PHALANX, alone)
        failed = subprocess.run([alone, 'env', 'show', 'llm'], env=dict(ENGLISH, PATH='/nowhere'), capture_output=True, text=True)
        self.assertEqual(failed.returncode, 3, failed.stderr)
        self.assertIn('phalanx-env, which is missing', failed.stderr)
        self.assertIn('copy phalanx-env of the same package to ' + alone + '-env', failed.stderr)
        found = subprocess.run([alone, 'env', 'show', 'no-such-name'], env=dict(ENGLISH, PATH=os.path.dirname(PHALANX)),
                               capture_output=True, text=True)
        self.assertEqual(found.returncode, 2, found.stderr)
        self.assertIn('no environment is named', found.stderr)


if __name__ == '__main__':
    unittest.main()
