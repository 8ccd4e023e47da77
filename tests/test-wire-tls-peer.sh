#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# --tls-verify-peer: only clients with a certificate of the server's authority
# are served, with --tls-allow only some of them, and each is known by its
# subject. Who is refused is told why in the log, with its address.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-tls.sh
. "${WEIR_SRCDIR:-.}/tests/lib-tls.sh"
need certtool psktool nbdinfo nbdcopy qemu-img jq cmp

ca=$tmp/ca server=$tmp/server
authority "$ca" || bail "no certificates can be made"
authority "$tmp/other"
certificate "$ca" "$server" server 'cn = localhost'
certificate "$ca" "$tmp/alice" client 'cn = alice'
certificate "$ca" "$tmp/bob" client 'cn = bob' 'dns_name = bob.example'
certificate "$ca" "$tmp/old" client 'cn = old' "${expired[@]}"
certificate "$ca" "$tmp/nameless" client 'cn = nameless'
cp -r "$tmp/nameless" "$tmp/none"
rm "$tmp/none/"client-*
# Signed by another authority; and by itself.
cp -r "$tmp/nameless" "$tmp/foreign"
certificate "$tmp/other" "$tmp/foreign" client 'cn = foreign'
cp -r "$tmp/nameless" "$tmp/self"
printf 'cn = self\ntls_www_client\nsigning_key\n' >"$tmp/template"
certtool --generate-self-signed --load-privkey "$tmp/self/client-key.pem" \
	--template "$tmp/template" --outfile "$tmp/self/client-cert.pem" \
	>/dev/null 2>&1
# A server's certificate is none for a client.
cp -r "$tmp/none" "$tmp/posing"
cp "$server/server-cert.pem" "$tmp/posing/client-cert.pem"
cp "$server/server-key.pem" "$tmp/posing/client-key.pem"
seq 1 700000 | head -c 4M >"$tmp/source.img"

# In TLS 1.3 a client hears of it only when it says the next thing.
# turned_away DIR REGEX DESCRIPTION
turned_away() {
	: >"$weir_log"
	nok "$3 is refused" connects "$(x509_uri "$tmp/$1")"
	logged "pid [0-9]+: TLS refused: $2" "$3: the log says why"
}

is_client() {
	weir stats --json "$ctl" |
		jq -e --arg who "$1" '.clients[] | select(.client == $who)'
}

start_weir --tls=require --tls-certificates="$server" --tls-verify-peer -- \
	store=mem:8M
ok "with a certificate: data goes through" \
	through "$(x509_uri "$tmp/alice")" "$tmp/source.img"
creds=tls-creds-x509,id=t,endpoint=client,dir=$tmp/alice
like "$(timeout_run 20 qemu-img info --object "$creds" --image-opts \
	"$(qemu_url t),tls-hostname=localhost" 2>&1)" "virtual size: 8 MiB" \
	"qemu-img"
turned_away none "the client shows no certificate" "no certificate"
turned_away old "the client's certificate, CN=old: certificate has expired" \
	"one that has expired"
turned_away foreign "the client's certificate, CN=foreign: unable to get" \
	"one of another authority"
turned_away self "the client's certificate, CN=self: self.signed" \
	"one that signed itself"
turned_away posing "the client's certificate, CN=localhost: .*purpose" \
	"a server's certificate"
background timeout_run 30 weir bench --rw randread --bs 4K --runtime 20s \
	--time-based --size 8M "$(x509_uri "$tmp/bob")" >/dev/null 2>&1
bench=$!
ok "a client is known by its subject" wait_until 10 is_client "CN=bob"
finish "$bench" TERM
stop_weir
is "$status" 0 "it ends well"

weir_name=allow
start_weir --tls=require --tls-certificates="$server" --tls-verify-peer \
	--tls-allow alice --tls-allow bob.example -- store=mem:8M
ok "allowed by its common name" connects "$(x509_uri "$tmp/alice")"
ok "and by another name it has" connects "$(x509_uri "$tmp/bob")"
turned_away nameless "the client's certificate, CN=nameless: .*--tls-allow" \
	"a name that is not among them"
stop_weir

# Both kinds at once: a key stands in for a certificate.
weir_name=both
psktool -u carol -p "$tmp/keys.psk" >/dev/null 2>&1
start_weir --tls=require --tls-certificates="$server" --tls-verify-peer \
	--tls-psk="$tmp/keys.psk" -- store=mem:8M
ok "with both, a certificate does" connects "$(x509_uri "$tmp/alice")"
ok "and a key does" connects "$(psk_uri carol "$tmp/keys.psk")"
turned_away none "the client shows no certificate" "neither"
stop_weir

certtool --generate-crl --load-ca-privkey "$ca.key" \
	--load-ca-certificate "$ca/ca-cert.pem" \
	--load-certificate "$tmp/bob/client-cert.pem" \
	--template <(echo 'crl_next_update = 30') \
	--outfile "$server/ca-crl.pem" >/dev/null 2>&1
weir_name=revoked
start_weir --tls=require --tls-certificates="$server" --tls-verify-peer -- \
	store=mem:8M
ok "beside a list of revoked ones, others are served" \
	connects "$(x509_uri "$tmp/alice")"
turned_away bob "the client's certificate, CN=bob: certificate revoked" \
	"one that was revoked"
stop_weir

refused_start "--tls-allow needs --tls-verify-peer" "names, and not asked" \
	--tls=on --tls-certificates="$server" --tls-allow alice
refused_start "--tls-verify-peer needs" "asked, with no authority" \
	--tls=on --tls-psk="$tmp/keys.psk" --tls-verify-peer
rm "$server/ca-cert.pem"
refused_start "$server/ca-cert.pem: No such file" "the authority is missing" \
	--tls=on --tls-certificates="$server" --tls-verify-peer
done_testing
