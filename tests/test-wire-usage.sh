#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A command line that is wrong: one clear line, exit 1, and nothing touched.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

server_only "nbdkit reads the plugin's command line"
image=$(make_image 4M)
touch -d 2001-01-01 "$image"

bad() { # bad REGEX ARGUMENT...
	local regex=$1
	shift
	exits 1 "refused: $*" timeout_run 10 weir-server -f -U "$tmp/s" "$@"
	like "$out" "^weir-server: $regex" "it says why"
	is "$(wc -l <<<"$out")" 1 "in one line"
}

bad 'nothing to serve'
bad '.*colour=red.*unknown' colour=red "$image"
bad '.*cache-size=lots' cache-size=lots "$image"
bad '.*cache-size=-1' cache-size=-1 "$image"
bad '.*dirty-limit=2G' cache-size=1G dirty-limit=2G "$image"
bad '.*page-size=5000' page-size=5000 "$image"
bad '.*block-size' page-size=4K block-size=64K "$image"
bad '.*cache=maybe' cache=maybe "$image"
bad 'shutdown-timeout=soon' shutdown-timeout=soon "$image"
bad '--threads 0: expected a number' --threads 0 "$image"
bad '--threads many: expected a number' --threads many "$image"
bad '--poll soon: expected a time' --poll soon "$image"
bad '--max-connections x: ' --max-connections x "$image"
bad '-U and -p or -i' -p 1 "$image"
bad '-U and --control: .* cannot be both' --control "$tmp/s" "$image"
bad 'store sim:: no inner store' sim:
bad 'store fault:: no inner store' fault:
bad 'store sim:latency=1ms: no inner store after "latency=1ms"' sim:latency=1ms
bad '--colour: unknown option' --colour "$image"
bad '.*one store only' "$image" "$image.2"
bad '.*one store only' "$image" store="$image.2"
bad '.*one store only' store="$image" store="$image"
bad '--threads 0: expected a number' "$image" --threads 0
bad '.*No such file or directory' "$tmp/nothing"
bad '.*nothing to serve|.*: ' store=
is "$(stat -c %Y "$image")" "$(date -d 2001-01-01 +%s)" \
	"the image was not written"
ok "no socket is left" test ! -e "$tmp/s"

exits 1 "-p 70000 is refused" timeout_run 10 weir-server -f -p 70000 "$image"
exits 0 "--help" weir-server --help
like "$out" 'KEY=VALUE' "says how"
exits 0 "--version" weir-server --version
like "$out" '^weir-server [0-9]' "says which"
done_testing
