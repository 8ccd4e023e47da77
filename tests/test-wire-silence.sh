#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A client that chooses no export is sent away after ten seconds, whether it
# says nothing, half an option, or one option after another. One that has
# chosen may be silent for as long as it likes.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

server_only "nbdkit accepts for the plugin"
image=$(make_image 4M)
start_weir --max-connections 4 -- store="$image"

printf '%s\n' eof | raw >"$tmp/mute" &
pids=($!)
printf '%s\n' greet 'opt 7 10 0000' eof | raw >"$tmp/half" &
pids+=($!)
{
	echo greet
	for _ in {1..3}; do
		printf '%s\n' list 'sleep 2000'
	done
	echo eof
} | raw >"$tmp/chatty" &
pids+=($!)
printf '%s\n' 'sleep 12000' 'read 1 0 512' recv | session >"$tmp/chosen" &
pids+=($!)
start=$SECONDS
wait "${pids[0]}"
ok "not before their time" test $((SECONDS - start)) -ge 9
is "$(session <<<$'read 1 0 512\nrecv')" "1 error 0 512 of 0x00" \
	"a slot is free then"
wait "${pids[@]}"
is "$(tail -n 1 "$tmp/mute")" eof "the mute one is sent away"
is "$(tail -n 1 "$tmp/half")" eof "so is the one with half an option"
is "$(tail -n 1 "$tmp/chatty")" eof "and the chatty one"
is "$(cat "$tmp/chosen")" "1 error 0 512 of 0x00" "who has chosen may stay"
stop_weir
is "$status" 0 "it ends well"
done_testing
