#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weir tls-init makes what a server and its clients need, and overwrites
# nothing.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-tls.sh
. "${WEIR_SRCDIR:-.}/tests/lib-tls.sh"
server_only "nbdkit has TLS of its own"
need certtool nbdinfo

pki=$tmp/pki
ok "it needs no openssl.cnf" env OPENSSL_CONF="$tmp/none.cnf" \
	weir tls-init --host localhost --host 127.0.0.1 --host weir.example "$pki"
for f in ca server client; do
	is "$(stat -c %a "$pki/$f-key.pem")" 600 "$f-key.pem is for its owner alone"
	like "$(certtool --verify --load-ca-certificate "$pki/ca-cert.pem" \
		--infile "$pki/$f-cert.pem" 2>&1)" "The certificate is trusted" \
		"$f-cert.pem is of the authority"
done
before=$(cat "$pki"/* | cksum)
nok "it overwrites nothing" weir tls-init "$pki"
like "$out" "$pki/ca-cert.pem: is there already" "and says what is there"
is "$(cat "$pki"/* | cksum)" "$before" "all is as it was"
nok "it needs a directory" weir tls-init
nok "one that can be made" weir tls-init "$tmp/none/pki"

port=$(free_port)
start_weir_tcp "$port" --tls=require --tls-certificates="$pki" \
	--tls-verify-peer -- store=mem:8M
ok "nbdinfo, by name" connects "nbds://localhost:$port/?tls-certificates=$pki"
ok "by address" connects "nbds://127.0.0.1:$port/?tls-certificates=$pki"
ok "weir bench" timeout_run 20 weir bench --rw randwrite --bs 16K --size 4M \
	--verify "nbds://localhost:$port/?tls-certificates=$pki"
ok "weir tls-init for another" weir tls-init --host elsewhere "$tmp/other"
nok "another's authority is not believed" \
	connects "nbds://localhost:$port/?tls-certificates=$tmp/other"

# A client that says nothing of TLS is told what to say.
for command in info bench; do
	exits 2 "$command in the clear" \
		timeout_run 20 weir "$command" "nbd://localhost:$port"
	like "$out" "^weir $command: .*: the server demands TLS; try 'nbds://" \
		"it says what to try"
done
try=${out#*try \'}
try=${try%%\'*}
ok "which works" timeout_run 20 weir info "${try/DIR/$pki}"
stop_weir
is "$status" 0 "it ends well"
done_testing
