#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# cache=none where little memory may be locked: the buffers of direct I/O are
# not registered with the kernel, which is said once, and all works.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

need setpriv
# root may lock what it likes while it has that capability.
setpriv --bounding-set -ipc_lock true 2>/dev/null ||
	skip_all "cannot do without a capability here"

image=$(make_image 16M)
said() { grep -c 'no registered buffers' "$weir_log"; }
works() {
	ok "data comes back" verified "write -q -P 0x5a 1000 300000" \
		"read -q -P 0 0 1000" "read -q -P 0x5a 1000 300000" \
		"read -q -P 0 301000 5000"
	stop_weir
	is "$status" 0 "it ends well"
}

weir_name=free start_weir store="$image" cache=none
if [ "$(said)" = 1 ]; then
	stop_weir
	skip_all "nothing can be locked here, or there is no io_uring"
fi
works
is "$(said)" 0 "nothing is said where all is well"

cat >"$tmp/bound" <<END
#!/bin/bash
ulimit -l 8192 && exec setpriv --bounding-set -ipc_lock "\$@"
END
chmod +x "$tmp/bound"
background() { # as in lib.sh, but bound
	"$tmp/bound" "$@" &
	started+=($!)
}
weir_name=bound start_weir store="$image" cache=none
works
is "$(said)" 1 "an ulimit -l of 8 MiB is said to be too little, once"
like "$(cat "$weir_log")" 'ulimit -l' "and how to change that"
weir_name=cached start_weir store="$image"
works
is "$(said)" 0 "with a cache nothing is to be locked"
done_testing
