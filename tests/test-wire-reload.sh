#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# SIGHUP: stores and exports are added, changed and removed while a verified
# load runs on another; what is wrong changes nothing.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

server_only "nbdkit has no reload"
need weir nbdinfo qemu-io jq

sock=$tmp/s
ctl=$tmp/ctl
log=$tmp/weir.log
for i in a b c; do
	make_image 32M $i.img >/dev/null
done

# config [SERVER-LINE]...: a file with the sections that are in the variables.
stores='' exports='' server=''
config() {
	printf '%s\n' "[server]" "unix = $sock" "control = $ctl" \
		"pidfile = $tmp/pid" "$server" "$stores" "$exports" \
		>"$tmp/weir.conf"
}
store() { # store NAME [LINE]...
	stores+="[store $1]
store = $tmp/$1.img
cache-size = 8M
"
	[ $# -eq 1 ] || stores+=$(printf '%s\n' "${@:2}")$'\n'
}
export_() { # export_ NAME STORE [LINE]...
	exports+="[export $1]
store = $2
"
	[ $# -eq 2 ] || exports+=$(printf '%s\n' "${@:3}")$'\n'
}
clear() {
	stores='' exports=''
}

lines() {
	wc -l <"$log"
}
# said REGEX: among the lines since $seen.
said() {
	tail -n "+$((seen + 1))" "$log" | grep -qE "$1"
}
# reload REGEX WHAT: until the log says so.
reload() {
	config
	seen=$(lines)
	kill -HUP "$weir_pid"
	if wait_until 20 said "$1"; then
		pass "$2"
	else
		fail "$2"
		diag "$(tail -n "+$((seen + 1))" "$log")"
	fi
}
uri() {
	echo "nbd+unix:///${1-}?socket=$sock"
}
names() {
	nbdinfo --list --json "$(uri)" | jq -c '[.exports[] | ."export-name"]'
}
store_names() {
	weir stats --json "$ctl" | jq -c '[.stores[].name] | sort'
}
store_count() {
	[ "$(store_names)" = "$1" ]
}
again='weir.conf is read again'

store a
export_ load a
config
background weir-server -f --config "$tmp/weir.conf" 2>"$log"
weir_pid=$!
wait_for "$tmp/pid" || bail "it does not start"

# A load that checks what it wrote, again and again, and a client that stays:
# what it writes now it will read at the end.
hammer() {
	while [ ! -e "$tmp/stop" ]; do
		weir bench --rw randwrite --verify --bs 4K --iodepth 8 \
			--size 4M --offset 1M "$(uri load)" || break
		echo >>"$tmp/rounds"
	done >"$tmp/bench.out" 2>&1
}
background hammer
load=$!
wait_until 20 test -s "$tmp/rounds" || bail "no load: $(cat "$tmp/bench.out")"

# client NAME EXPORT: a qemu-io that takes commands from a fifo.
client() {
	exec stdbuf -oL qemu-io -f raw "$(uri "$2")" \
		<"$tmp/$1.in" >"$tmp/$1.out" 2>&1
}
mkfifo "$tmp/stays.in" "$tmp/leaves.in"
exec 8<>"$tmp/stays.in" 9<>"$tmp/leaves.in"
answered() { # answered NAME REGEX
	wait_until 10 grep -qE "$2" "$tmp/$1.out"
}
background client stays load
echo 'write -P 9 0 64K' >&8
answered stays 'wrote 65536' || bail "no client"

# --- adding ---
store b
export_ b b 'description = the second'
export_ look a 'readonly = yes'
reload "$again" "a store and two exports are added"
is "$(names)" '["load","b","look"]' "in the order of the file"
is "$(store_names)" '["a","b"]' "both stores are counted"
ok "the new store is used" qemu-io -f raw -c 'write -P 3 0 1M' "$(uri b)"
nok "the read-only one is that" qemu-io -f raw -c 'write 0 4K' "$(uri look)"

# --- nothing is changed by what is wrong ---
keep=$exports
exports+=$'[export bad]\nstore = nothing\ncolour = red\n'
reload 'nothing is changed' "a file with errors is refused"
ok "the line is said" said 'weir.conf:[0-9]+: colour=red: '
exports=$keep
keep=$stores
store none
rm -f "$tmp/none.img"
reload 'nothing is changed' "a store that cannot be opened is refused"
ok "and said" said 'none.img: .*No such file'
is "$(names)" '["load","b","look"]' "the exports are as they were"
stores=$keep
ok "what was opened is in use yet" qemu-io -f raw -c 'read -P 3 0 1M' "$(uri b)"

# --- changing ---
clear
store a 'dirty-limit = 3M'
store b 'page-size = 16K'
export_ load a 'description = new'
export_ b b
export_ look a 'readonly = yes'
server='max-connections = 7
threads = 3'
reload "$again" "changes"
ok "a live key is changed under its clients" said 'store a: changed: dirty-limit'
is "$(stat_of dirty_limit_bytes)" $((3 << 20)) "and is what it was set to"
ok "another reopens a store nobody uses" said 'store b: is opened anew'
ok "what cannot be is said" said 'threads: to take effect'
ok "it is open again" wait_until 10 said 'store b: opened'
ok "with what was written" qemu-io -r -f raw -c 'read -P 3 0 1M' "$(uri b)"
is "$(weir stats --json "$ctl" | jq -r '.exports[0].description')" new \
	"a description is changed"

# Somebody is there: the store is kept as it is.
background client leaves b
echo 'write -P 120 0 64K' >&9
answered leaves 'wrote 65536' || bail "no client"
clear
store a 'dirty-limit = 3M'
store b 'page-size = 32K'
export_ load a
export_ b b
reload "$again" "a store that is in use"
ok "is kept" said 'store b: page-size: not changed while clients are connected'
is "$(names)" '["load","b"]' "an export is removed"

# --- removing ---
clear
store a 'dirty-limit = 3M'
export_ load a
reload 'store b: flushed and closed' "a store and its export are removed"
ok "and gone" store_count '["a"]'
echo 'read 0 64K' >&9
ok "its client is ended" answered leaves 'read failed'
is "$(head -c 65536 "$tmp/b.img" | tr -d x | wc -c)" 0 \
	"what it wrote is in the store"
nok "and its export is gone" nbdinfo "$(uri b)"
# Again, with another name for the same place: one after the other.
store b
export_ b b
reload "store b: opened" "it comes back"
clear
store a 'dirty-limit = 3M'
stores+="[store again]
store = $tmp/b.img
cache-size = 8M
"
export_ load a
export_ b again
reload "store again: opened" "another name for the same place"
ok "it is served" nbdinfo --size "$(uri b)"

ok "the load goes on" kill -0 "$load"
touch "$tmp/stop"
wait "$load"
is "$(grep -c ' 0 wrong' "$tmp/bench.out")" "$(wc -l <"$tmp/rounds")" \
	"and all it read was right"
echo 'read -P 9 0 64K' >&8
ok "the client that stayed" answered stays 'read 65536/65536'
nok "reads what it wrote" grep 'failed' "$tmp/stays.out"
clear
stores="[store again]
store = $tmp/b.img
cache-size = 8M
"
export_ b again
reload 'store a: flushed and closed' "the store there was first goes too"
is "$(store_names)" '["again"]' "the other is counted"
stop_weir
is "$status" 0 "the server ends well"
done_testing
