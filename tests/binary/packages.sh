#!/usr/bin/env bash
# packages.sh MAKE_PACKAGES LAUNCHER: what `./x dist` makes: the same bytes twice, the right contents, and a .deb that dpkg installs into an
# empty system, where its launcher runs, and removes again without a trace.
set -euo pipefail
make_packages=$1 launcher=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAIL: %s\n' "$*"; exit 1; }

export SOURCE_DATE_EPOCH=1700000000
"$make_packages" "$launcher" "$work/first" > "$work/made"
(umask 077 && TZ=Asia/Tokyo LC_ALL=C "$make_packages" "$launcher" "$work/second" > /dev/null)
diff -r "$work/first" "$work/second" || fail "two packings of one launcher differ"
(cd "$work/first" && sha256sum --check --quiet SHA256SUMS) || fail "SHA256SUMS is wrong"

version=$("$launcher" --version)
number=$(cut -d ' ' -f 2 <<< "$version")
tarball=$(sed -n '/\.tar\.gz$/p' "$work/made")
[[ $(basename "$tarball") == "phalanx-$number-linux-$(uname -m).tar.gz" ]] || fail "the tarball is called $tarball"

# same FILE: standard input against the list in FILE, both sorted.
same() { LC_ALL=C sort | diff - <(LC_ALL=C sort "$1") || fail "the contents of $2 differ (<: what it has)"; }

# Every entry belongs to root, is of the given time, and is writable by its owner only.
tar --list --verbose --numeric-owner --full-time --utc -zf "$tarball" > "$work/listing"
! grep -vE '^(drwxr-xr-x|-rw[x-]r-[x-]r-[x-]) 0/0 +[0-9]+ 2023-11-14 22:13:20 ' "$work/listing" || fail "owner, permissions or time"
top=phalanx-$number-linux-$(uname -m)
sed "s|^|$top/|" > "$work/wanted" <<'LIST'
CHANGELOG.md
LICENSE
README.md
README.zh-CN.md
bin/phalanx
bin/phalanx-env
share/bash-completion/completions/phalanx
share/fish/vendor_completions.d/phalanx.fish
share/man/man1/phalanx.1.gz
share/zsh/site-functions/_phalanx
LIST
tar -tzf "$tarball" | grep -v '/$' | same "$work/wanted" "$tarball"
tar -xzf "$tarball" -C "$work"
[[ $("$work/$top/bin/phalanx" --version) == "$version" ]] || fail "the launcher of the tarball says another version"
mkdir -p "$work/venv/bin"
printf 'home = /nowhere\n' > "$work/venv/pyvenv.cfg"
"$work/$top/bin/phalanx" env show "$work/venv" > "$work/shown" || fail "phalanx env does not find phalanx-env beside it"
grep -q venv "$work/shown" || fail "phalanx env show says $(cat "$work/shown")"
[[ $(zcat "$work/$top/share/man/man1/phalanx.1.gz" | head -n 1) == ".TH PHALANX 1"* ]] || fail "no manual page"
bash -n "$work/$top/share/bash-completion/completions/phalanx" || fail "the completions are no bash"

deb=$(sed -n '/\.deb$/p' "$work/made")
if [[ -z $deb ]]; then echo "SKIP: needs dpkg-deb"; exit 77; fi
[[ $(dpkg-deb --field "$deb" Package Version Architecture | tr '\n' ' ') == \
  "Package: phalanx Version: $number Architecture: $(dpkg --print-architecture) " ]] || fail "control: $(dpkg-deb --field "$deb")"

# A system of its own, without packages; no root is needed for it, and the machine's own dpkg is not touched.
root=$work/root
mkdir -p "$root/var/lib/dpkg/"{updates,info}
touch "$root/var/lib/dpkg/status"
in_root() { dpkg --root="$root" --log=/dev/null --force-not-root --force-bad-path "$@" 2>&1; }
in_root --install "$deb" > "$work/log" || { cat "$work/log"; fail "dpkg does not install it"; }
[[ $("$root/usr/bin/phalanx" --version) == "$version" ]] || fail "the installed launcher says another version"
in_root --verify phalanx || fail "md5sums are wrong"
cat > "$work/wanted" <<'LIST'
/usr/bin/phalanx
/usr/bin/phalanx-env
/usr/share/bash-completion/completions/phalanx
/usr/share/doc/phalanx/CHANGELOG.md
/usr/share/doc/phalanx/README.md
/usr/share/doc/phalanx/README.zh-CN.md
/usr/share/doc/phalanx/changelog.gz
/usr/share/doc/phalanx/copyright
/usr/share/fish/vendor_completions.d/phalanx.fish
/usr/share/man/man1/phalanx.1.gz
/usr/share/zsh/vendor-completions/_phalanx
LIST
in_root --listfiles phalanx | while read -r path; do [[ ! -f $root$path ]] || echo "$path"; done | same "$work/wanted" "$deb"
in_root --purge phalanx > "$work/log" || { cat "$work/log"; fail "dpkg does not remove it"; }
left=$(find "$root" -path "$root/var" -prune -o -type f -print)
[[ -z $left ]] || fail "left behind: $left"
echo "PASS: $(basename "$tarball"), $(basename "$deb")"
