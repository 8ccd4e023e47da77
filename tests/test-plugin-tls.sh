#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# TLS by nbdkit in front of the plugin: pre-shared keys and certificates.
# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-tls.sh
. "${WEIR_SRCDIR:-.}/tests/lib-tls.sh"
need nbdkit nbdcopy nbdinfo psktool certtool cmp

WEIR_FRONTEND=plugin
seq 1 700000 | head -c 4M >"$tmp/source.img"

# through URI: a file goes in and comes out the same.
through() {
	timeout_run 30 nbdcopy --flush "$tmp/source.img" "$1" &&
		timeout_run 30 nbdcopy "$1" "$tmp/out.img" &&
		cmp "$tmp/source.img" "$tmp/out.img"
}

ok "a key is made" psktool -u alice -p "$tmp/keys.psk"
weir_name=psk
start_weir --tls=require --tls-psk="$tmp/keys.psk" -- store=mem:4M
ok "data goes through with the key" through \
	"nbds+unix://alice@/?socket=$sock&tls-psk-file=$tmp/keys.psk"
nok "plain text is refused" timeout_run 20 nbdinfo "$uri"
stop_weir TERM
is "$status" 0 "it ends well"

pki=$tmp/pki
certificates() {
	authority "$pki" &&
		certificate "$pki" "$pki" server 'cn = localhost' \
			'dns_name = localhost'
}
ok "certificates are made" certificates
mkdir "$tmp/client"
cp "$pki/ca-cert.pem" "$tmp/client"

weir_name=x509
start_weir --tls=require --tls-certificates="$pki" -- store=mem:4M
ok "data goes through with a certificate" through \
	"nbds+unix://localhost/?socket=$sock&tls-certificates=$tmp/client"
nok "plain text is refused" timeout_run 20 nbdinfo "$uri"
stop_weir TERM
is "$status" 0 "it ends well"
done_testing
