#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What nbdkit says of the plugin, and what it refuses before it serves.
# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
need nbdkit

dump=$(nbdkit weir --dump-plugin) || bail "nbdkit weir --dump-plugin fails"
has() { # has LINE
	grep -qxF "$1" <<<"$dump"
}
ok "it loads under its name" has name=weir
ok "requests run in parallel" has thread_model=parallel
ok "a bare argument is the store" has magic_config_key=store
ok "it says how it does I/O" grep -qE '^weir_io=(io_uring|threads)$' <<<"$dump"
for f in after_fork cleanup block_size can_fast_zero extents cache \
	list_exports dump_plugin; do
	ok "it has $f" has "has_$f=1"
done

help=$(nbdkit weir --help)
keys=$(sed -n 's/^ *\([a-z-]*\)=.*/\1/p' <<<"$help" | sort -u)
for key in store cache-size threads control; do
	ok "--help has $key" grep -qx "$key" <<<"$keys"
done

image=$(make_image 1M)

# refuses TEXT ARGUMENT...: nbdkit ends in the foreground, with TEXT.
refuses() {
	local want=$1
	shift
	nok "refused: $*" timeout_run 10 nbdkit -f -U "$tmp/refused" weir "$@"
	like "$out" "$want" "  and says why"
}
refuses 'store' cache-size=1M
refuses 'cache-sise' "$image" cache-sise=1M
refuses 'cache-size=1X' "$image" cache-size=1X
refuses 'page-size=3000' "$image" page-size=3000
refuses 'dirty-limit=2M.*cache-size=1M' "$image" cache-size=1M dirty-limit=2M
refuses 'threads=0' "$image" threads=0
refuses 'threads=1000' "$image" threads=1000
refuses 'shutdown-timeout=soon' "$image" shutdown-timeout=soon
refuses "$tmp/none.img.*No such file" "$tmp/none.img"
refuses 'none/ctl' "$image" control="$tmp/none/ctl"
ok "nothing was made of a refused store" test ! -e "$tmp/none.img"
ok "nor a socket" test ! -e "$tmp/refused"
done_testing
