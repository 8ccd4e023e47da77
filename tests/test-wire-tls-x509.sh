#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# TLS with certificates: clients of all kinds are served; who does not believe
# the server goes, and the server's log says why; files that are missing or do
# not fit are named at the start.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-tls.sh
. "${WEIR_SRCDIR:-.}/tests/lib-tls.sh"
need certtool nbdinfo nbdcopy qemu-img qemu-io fio cmp

ca=$tmp/ca
authority "$ca" || bail "no certificates can be made"
certificate "$ca" "$tmp/server" server 'cn = localhost' 'dns_name = localhost'
mkdir "$tmp/client"
cp "$ca/ca-cert.pem" "$tmp/client"
seq 1 1500000 | head -c 9M >"$tmp/source.img"

# --- served -------------------------------------------------------------------

start_weir --tls=on --tls-certificates="$tmp/server" -- store=mem:16M
plain=$uri uri=$(x509_uri "$tmp/client")
like "$(timeout_run 20 nbdinfo "$uri")" "with TLS" "nbdinfo"
ok "nbdcopy: data goes in and comes out the same" through "$uri" \
	"$tmp/source.img"
ok "a plain client is served too, where TLS is offered" \
	timeout_run 20 nbdinfo --size "$plain"
ok "weir info" timeout_run 20 weir info "$uri"
ok "weir bench" timeout_run 30 weir bench --rw randwrite --bs 16K \
	--iodepth 8 --size 8M --verify "$uri"
# fio names no files; over a unix socket libnbd wants no authority.
ok "fio" timeout_run 30 fio --name=tls --ioengine=nbd \
	--uri="nbds+unix:///?socket=$sock" \
	--rw=randrw --bs=4k-64k --size=8M --iodepth=16 --verify_state_save=0 --verify=crc32c \
	--verify_fatal=1 --thread
creds=tls-creds-x509,id=t,endpoint=client,dir=$tmp/client
opts=$(qemu_url t),tls-hostname=localhost
like "$(timeout_run 20 qemu-img info --object "$creds" --image-opts "$opts" \
	2>&1)" "virtual size: 16 MiB" "qemu-img"
out=$(timeout_run 20 qemu-io --object "$creds" --image-opts \
	-c 'write -P 7 12345 3M' -c 'read -P 7 12345 3M' -c flush "$opts" 2>&1)
is "$?$(grep -iE 'failed|error|mismatch' <<<"$out")" 0 "qemu-io"

stop_weir
is "$status" 0 "it ends well"

# --- not believed -------------------------------------------------------------

# tcp DIR [HOST]: over TCP libnbd looks at the name too.
tcp() {
	echo "nbds://${2:-localhost}:$port/?tls-certificates=$1"
}
port=$(free_port)
authority "$tmp/other"
weir_name=tcp
start_weir_tcp "$port" --tls=require --tls-certificates="$tmp/server" -- store=mem:16M
ok "over TCP" connects "$(tcp "$tmp/client")"
nok "a client of another authority goes" connects "$(tcp "$tmp/other")"
logged "127.0.0.1:[0-9]+: TLS refused: .*does it trust" \
	"the log says that the client refuses"
: >"$weir_log"
nok "so does one that means another host" \
	connects "$(tcp "$tmp/client" 127.0.0.1)"
logged "127.0.0.1:[0-9]+: TLS refused: .*does it trust" \
	"the log says so"
nok "a plain client is refused" timeout_run 20 nbdinfo "$uri"
stop_weir
is "$status" 0 "it ends well"

certificate "$ca" "$tmp/old" server 'cn = localhost' 'dns_name = localhost' \
	"${expired[@]}"
weir_name=old
start_weir_tcp "$port" --tls=require --tls-certificates="$tmp/old" -- store=mem:16M
logged "old/server-cert.pem: has expired" "one that has expired is warned of"
nok "and not believed" connects "$(tcp "$tmp/client")"
logged "TLS refused: .*does it trust" "which the log says"
stop_weir

weir_name=off
start_weir store=mem:16M
nok "without TLS nothing is offered" connects "$(x509_uri "$tmp/client")"
stop_weir

# --- at the start -------------------------------------------------------------

bad=$tmp/bad
fresh() {
	rm -rf "$bad"
	cp -r "$tmp/server" "$bad"
}
with=(--tls=on --tls-certificates="$bad")
refused_start "$bad: No such file" "no directory" "${with[@]}"
fresh
rm "$bad/server-key.pem"
refused_start "$bad/server-key.pem: No such file" "no key" "${with[@]}"
fresh
rm "$bad/server-cert.pem"
refused_start "$bad/server-cert.pem: No such file" "no certificate" "${with[@]}"
fresh
cp "$ca.key" "$bad/server-key.pem"
refused_start "$bad/server-key.pem: the key does not belong" \
	"another key" "${with[@]}"
fresh
head -c 300 "$tmp/server/server-key.pem" >"$bad/server-key.pem"
refused_start "$bad/server-key.pem: [a-z]" "half a key" "${with[@]}"
fresh
head -c 300 "$tmp/server/server-cert.pem" >"$bad/server-cert.pem"
refused_start "$bad/server-cert.pem: [a-z]" "half a certificate" "${with[@]}"
fresh
certtool --generate-privkey --key-type=ecdsa --password=secret --pkcs8 \
	--outfile "$bad/server-key.pem" >/dev/null 2>&1
refused_start "$bad/server-key.pem: [a-z]" "a key with a password" "${with[@]}"
refused_start "TLS is off" "certificates, and TLS off" --tls-certificates="$bad"
refused_start "needs --tls-certificates DIR or --tls-psk" "TLS with nothing" \
	--tls=require
refused_start "expected off, on or require" "a mode that is none" --tls=yes
done_testing
