#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What make install leaves, what a distribution holds, and the Debian packages:
# built, clean under lintian, installed over a copy of this system, and run.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need dpkg-buildpackage dh lintian curl
m=(make -s -C "$WEIR_BUILDDIR" --no-print-directory)

# --- make install -------------------------------------------------------------

dest=$tmp/dest
ok "install" "${m[@]}" install DESTDIR="$dest"
is "$(find "$dest" -name '*.la' -o -name '*.a')" "" "no archives"
for f in bin/weir sbin/weir-server share/man/man1/weir.1 \
	share/man/man8/weir-server.8 share/doc/weir/examples/weir.conf \
	share/bash-completion/completions/weir-server; do
	is "$(find "$dest" -type f -path "*/$f" | wc -l)" 1 "$f is there"
done
is "$(find "$dest" -type f -path '*/nbdkit/plugins/*')" \
	"$(find "$dest" -name nbdkit-weir-plugin.so)" "the plugin alone is a plugin"
ok "uninstall" "${m[@]}" uninstall DESTDIR="$dest"
is "$(find "$dest" ! -type d)" "" "nothing is left"

# --- a distribution -----------------------------------------------------------

ok "a distribution" "${m[@]}" distdir
mv "$WEIR_BUILDDIR"/weir-[0-9]* "$tmp/weir-dist" || bail "it is not there"
is "$(comm -23 <(sources '*' | grep -v '^\.gitignore$' | sort) \
	<(find "$tmp/weir-dist" -type f -printf '%P\n' | sort))" "" \
	"every file of the tree is in it"

# --- packages -----------------------------------------------------------------

build_packages() {
	(cd "$tmp/weir-dist" &&
		DEB_BUILD_OPTIONS="nocheck noautodbgsym parallel=2" \
			timeout 400 dpkg-buildpackage -b -us -uc) \
		>"$tmp/packages.log" 2>&1
}

ok "the packages build" build_packages
is "$(cd "$tmp" && printf '%s ' *.deb | sed 's/_[^ ]*//g')" \
	"nbdkit-plugin-weir weir-server weir " "there are three"
ok "lintian is content" lintian --allow-root --fail-on error,warning \
	"$tmp"/*.changes
is "$out" "" "and says nothing"

# --- installed ----------------------------------------------------------------

# In a mount namespace with this system below, and all changes in memory.
cat >"$tmp/inside.sh" <<'END'
set -e
tmp=$1
mkdir -p "$tmp/over"
mount -t tmpfs over "$tmp/over"
mkdir "$tmp/over/upper" "$tmp/over/work" "$tmp/over/root"
mount -t overlay over -o \
	"lowerdir=/,upperdir=$tmp/over/upper,workdir=$tmp/over/work" \
	"$tmp/over/root"
cd "$tmp/over/root"
mount -t proc proc proc
mount --rbind /dev dev
mkdir -p packages
cp "$tmp"/*.deb packages/
exec chroot . /bin/sh -ec '
	export PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
	dpkg -i /packages/*.deb
	truncate -s 16M /disk.img
	weir-server -U /sock --control /ctl -P /pid --metrics 127.0.0.1:0 /disk.img
	weir info "nbd+unix:///?socket=/sock" | grep -q 16M
	weir bench --rw write --bs 64K --size 1M "nbd+unix:///?socket=/sock"
	weir top -b -n 1 --interval 100ms /ctl
	kill "$(cat /pid)"
	n=0
	while [ -e /pid ] && [ $n -lt 100 ]; do sleep 0.1; n=$((n + 1)); done
	[ ! -e /pid ]
	nbdkit weir --dump-plugin | grep -q "^name=weir"
	nbdkit -U - weir store=mem:1M --run "weir info \"\$uri\""
	man -w weir-server weir nbdkit-weir-plugin weir-stores >/dev/null ||
		! command -v man
	dpkg -P weir weir-server nbdkit-plugin-weir
	[ -z "$(find /usr -name "*weir*" ! -path "*/local/*")" ]
'
END

can_overlay() {
	unshare -m sh -c "mkdir -p '$tmp/probe' &&
		mount -t tmpfs probe '$tmp/probe' &&
		mkdir '$tmp/probe/u' '$tmp/probe/w' '$tmp/probe/r' &&
		mount -t overlay o -o \
		'lowerdir=/,upperdir=$tmp/probe/u,workdir=$tmp/probe/w' \
		'$tmp/probe/r'"
}

if [ "$(id -u)" -ne 0 ]; then
	skip "not root" "installed and run"
elif ! can_overlay 2>"$tmp/can.out"; then
	skip "no overlay mount: $(tail -n 1 "$tmp/can.out")" "installed and run"
else
	ok "installed, run and purged" timeout_run 120 \
		unshare -m -p -f --kill-child sh "$tmp/inside.sh" "$tmp"
fi
done_testing
