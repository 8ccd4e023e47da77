#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# SIGHUP: certificates and keys are read again. Connections go on, later ones
# get what is new; with an error in it, what was read before stays in use.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-tls.sh
. "${WEIR_SRCDIR:-.}/tests/lib-tls.sh"
need certtool psktool nbdinfo

authority "$tmp/one" || bail "no certificates can be made"
authority "$tmp/two"
served=$tmp/served
certificate "$tmp/one" "$served" server 'cn = localhost' 'dns_name = localhost'
certificate "$tmp/two" "$tmp/next" server 'cn = localhost' 'dns_name = localhost'
psktool -u alice -p "$tmp/alice.psk" >/dev/null 2>&1
psktool -u bob -p "$tmp/bob.psk" >/dev/null 2>&1
cp "$tmp/alice.psk" "$tmp/keys.psk"

# Over TCP a client looks at who signed.
believes() {
	connects "nbds://localhost:$port/?tls-certificates=$tmp/$1"
}

knows() {
	connects "nbds://$1@localhost:$port/?tls-psk-file=$tmp/$1.psk"
}

hang_up() { # hang_up REGEX DESCRIPTION
	: >"$weir_log"
	kill -HUP "$weir_pid"
	logged "$1" "$2"
}

port=$(free_port)
start_weir_tcp "$port" --tls=require --tls-certificates="$served" \
	--tls-psk="$tmp/keys.psk" -- store=mem:8M
ok "the first certificate is served" believes one
nok "a second is not known" believes two
ok "the first key is known" knows alice
nok "a second is not" knows bob

timeout_run 60 weir bench --rw randrw --bs 16K --iodepth 4 --size 8M \
	--runtime 6s --time-based "nbds://alice@localhost:$port/?tls-psk-file=$tmp/alice.psk" \
	>"$tmp/bench" 2>&1 &
bench=$!
sleep 0.5
cp "$tmp/next/"server-*.pem "$served"
cat "$tmp/bob.psk" >>"$tmp/keys.psk"
hang_up "certificates and keys are read again" "SIGHUP: all is read again"
ok "the new certificate is served" believes two
nok "and not the old one" believes one
ok "the new key is known" knows bob
ok "and the old one still" knows alice

head -n -2 "$tmp/next/server-key.pem" >"$served/server-key.pem"
hang_up "$served/server-key.pem: .*; going on with" "a broken key is named"
ok "what was read before is served" believes two
cp "$tmp/next/server-key.pem" "$served"
echo 'carol' >>"$tmp/keys.psk"
hang_up "$tmp/keys.psk: line 3: .*; going on with" "so is a broken line"
ok "and the keys from before are known" knows bob
sed -i 3d "$tmp/keys.psk"
sed -i 1d "$tmp/keys.psk"
hang_up "certificates and keys are read again" "mended, it is read"
nok "a key that was taken out is not known" knows alice
ok "the one that stays is" knows bob
wait "$bench"
is "$?" 0 "the connection from before has gone on all the while"
stop_weir
is "$status" 0 "it ends well"

weir_name=plain
start_weir store=mem:8M
hang_up "SIGHUP: there is nothing to read again" "without TLS it ends nothing"
ok "the server is there" connects "$uri"
stop_weir
done_testing
