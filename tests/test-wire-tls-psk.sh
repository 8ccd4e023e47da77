#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# TLS with pre-shared keys, in both versions: who has a key of the file is
# served, others are not and the log says why; a line that cannot be read is
# named at the start.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-tls.sh
. "${WEIR_SRCDIR:-.}/tests/lib-tls.sh"
need psktool nbdinfo nbdcopy qemu-img qemu-io cmp jq

keys=$tmp/keys.psk
for user in alice bob; do
	psktool -u "$user" -p "$keys" >/dev/null 2>&1
done
seq 1 1500000 | head -c 9M >"$tmp/source.img"

start_weir -v --tls=require --tls-psk="$keys" -- store=mem:16M
uri=$(psk_uri alice "$keys")
like "$(timeout_run 20 nbdinfo "$uri")" "with TLS" "nbdinfo"
logged "TLSv1.3, TLS_AES_128_GCM_SHA256, psk alice" "with TLS 1.3"
ok "nbdcopy: data goes in and comes out the same" through "$uri" \
	"$tmp/source.img"
creds=tls-creds-psk,id=t,endpoint=client,dir=$tmp,username=bob
opts=$(qemu_url t)
like "$(timeout_run 20 qemu-img info --object "$creds" --image-opts "$opts" \
	2>&1)" "virtual size: 16 MiB" "qemu-img"
out=$(timeout_run 20 qemu-io --object "$creds" --image-opts \
	-c 'write -P 7 12345 3M' -c 'read -P 7 12345 3M' -c flush "$opts" 2>&1)
is "$?$(grep -iE 'failed|error|mismatch' <<<"$out")" 0 "qemu-io"

printf '[overrides]\ndisabled-version = tls1.3\n' >"$tmp/gnutls.conf"
old_tls() {
	GNUTLS_SYSTEM_PRIORITY_FILE=$tmp/gnutls.conf "$@"
}
ok "with TLS 1.2 too" old_tls through "$uri" "$tmp/source.img"
logged "TLSv1.2, ECDHE-PSK-.*, psk alice" "with a forward-secret cipher"

# --- who it is ----------------------------------------------------------------

is_client() {
	weir stats --json "$ctl" |
		jq -e --arg who "$1" '.clients[] | select(.client == $who)'
}
background timeout_run 30 weir bench --rw randread --bs 4K --runtime 20s \
	--time-based --size 8M "$(psk_uri bob "$keys")" >/dev/null 2>&1
bench=$!
ok "a client is known by its key's name" wait_until 10 is_client "psk bob"
finish "$bench" TERM

# --- others -------------------------------------------------------------------

psktool -u mallory -p "$tmp/mallory.psk" >/dev/null 2>&1
sed 's/^mallory/alice/' "$tmp/mallory.psk" >"$tmp/false.psk"
nok "a name that has no key is refused" \
	connects "$(psk_uri mallory "$tmp/mallory.psk")"
logged 'TLS refused: no key of the name "mallory"' "and the log names it"
nok "so is another key for a name" connects "$(psk_uri alice "$tmp/false.psk")"
logged "TLS refused: the client's key is another one" "which the log says"
: >"$weir_log"
nok "with TLS 1.2 too: a name" \
	old_tls connects "$(psk_uri mallory "$tmp/mallory.psk")"
logged 'TLS refused: no key of the name "mallory"' "the log names it"
nok "and a key" old_tls connects "$(psk_uri alice "$tmp/false.psk")"
logged "TLS refused: (the client's key is another one|the client says)" \
	"which the log says"
ok "the right one is served still" connects "$uri"
stop_weir
is "$status" 0 "it ends well"

# --- at the start -------------------------------------------------------------

# bad_line LINE REGEX DESCRIPTION: behind a good one.
bad_line() {
	head -n 1 "$keys" >"$tmp/bad.psk"
	printf '%s\n' "$1" >>"$tmp/bad.psk"
	refused_start "$tmp/bad.psk: line 2: .*$2" "$3" --tls=on \
		--tls-psk="$tmp/bad.psk"
}
key=00112233445566778899aabbccddeeff
bad_line "alice" "expected NAME:HEXKEY" "a line without a key"
bad_line "carol:${key}xx" "not hexadecimal" "a key that is no number"
bad_line "carol:${key}0" "not hexadecimal" "half a byte"
bad_line "carol:0011" "16 to 256 bytes" "a key too short"
bad_line "alice:$key" "has a key already" "a name twice"
: >"$tmp/bad.psk"
refused_start "$tmp/bad.psk: no key in it" "an empty file" --tls=on \
	--tls-psk="$tmp/bad.psk"
refused_start "$tmp/none.psk: No such file" "no file" --tls=on \
	--tls-psk="$tmp/none.psk"
done_testing
