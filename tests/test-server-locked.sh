#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Two servers on one raw image: the second is refused, and says which file.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

image=$(make_image 4M)
start_weir store="$image"
first=$sock

# shellcheck disable=SC2034 # for front_end
listen=(-U "$tmp/b.sock") ctl=$tmp/b.ctl pidfile=$tmp/b.pid
front_end store="$image"
exits 1 "a second one is refused" timeout_run 10 "${command[@]}"
like "$out" "${image##*/}" "it names the file"
ok "it leaves no pid file" test ! -e "$tmp/b.pid"

sock=$first
says "1 error 0" "the first one goes on" <<END
write 1 0 4096 1
recv
END
stop_weir
is "$status" 0 "it ends well"
weir_name=next start_weir store="$image"
says "1 error 0 4096 of 0x01" "and leaves the image to the next" <<END
read 1 0 4096
recv
END
done_testing
