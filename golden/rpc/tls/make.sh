#!/usr/bin/env bash
# Makes the certificates of `rpc.tunnel` and of the tests of TLS anew, valid for about 100 years unless their name says otherwise. The keys
# of the authorities are not kept. Nothing but cases and tests trusts them: end.key is for all to read.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

key() { openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out "$1"; }

# authority FILE NAME: one that signs, as FILE; its key stays in $work.
authority() {
    key "$work/$1.key"
    openssl req -x509 -new -key "$work/$1.key" -days 36500 -subj "/CN=$2" -out "$1.pem" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
}

# end FILE AUTHORITY USAGE NAMES FROM UNTIL: a certificate of end.key; without any name where NAMES is empty.
end() {
    openssl req -new -key end.key -subj "/CN=tvmspec test $1" -out "$work/$1.csr"
    cat >"$work/ca.conf" <<CONF
[ca]
default_ca = it
[it]
database = $work/index
new_certs_dir = $work
serial = $work/serial
default_md = sha256
policy = any
x509_extensions = ends
unique_subject = no
[any]
commonName = supplied
[ends]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = $3
${4:+subjectAltName = $4}
CONF
    : >"$work/index"
    openssl rand -hex 8 >"$work/serial"
    openssl ca -batch -notext -config "$work/ca.conf" -cert "$2.pem" -keyfile "$work/$2.key" -in "$work/$1.csr" \
        -startdate "$5" -enddate "$6" -out "$1.pem" 2>"$work/log" || { cat "$work/log"; exit 1; }
}

key end.key
key other.key
authority authority "tvmspec test authority"
authority other-authority "tvmspec other test authority"
here="DNS:localhost, IP:127.0.0.1"
always=(20200101000000Z 21200101000000Z)
end server authority serverAuth "$here" "${always[@]}"
end elsewhere authority serverAuth "DNS:board.example" "${always[@]}"
end expired authority serverAuth "$here" 20200101000000Z 20210101000000Z
end client authority clientAuth "DNS:client.example" "${always[@]}"
end stranger other-authority clientAuth "DNS:client.example" "${always[@]}"
end old-client authority clientAuth "DNS:client.example" 20200101000000Z 20210101000000Z
end future authority serverAuth "$here" 21190101000000Z 21200101000000Z
end nameless authority serverAuth "" "${always[@]}"

# Its own authority, as `openssl req -x509` makes one without more options.
openssl req -x509 -new -key end.key -days 36500 -subj "/CN=localhost" -out self.pem \
    -addext basicConstraints=critical,CA:TRUE -addext "subjectAltName = $here"

# Another authority with the name of the first one.
authority namesake "tvmspec test authority"

# A certificate of an authority in the middle, which the first one has signed.
key "$work/middle.key"
openssl req -new -key "$work/middle.key" -subj "/CN=tvmspec test middle" -out "$work/middle.csr"
printf 'basicConstraints = critical, CA:TRUE\nkeyUsage = critical, keyCertSign\n' >"$work/middle.conf"
openssl x509 -req -in "$work/middle.csr" -CA authority.pem -CAkey "$work/authority.key" -CAcreateserial -CAserial "$work/middle.serial" \
    -days 36500 -extfile "$work/middle.conf" -out middle.pem 2>/dev/null
end leaf middle serverAuth "$here" "${always[@]}"
cat leaf.pem middle.pem >chain.pem
rm leaf.pem middle.pem

# What is no certificate, and a key with a password.
printf -- '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n' >broken.pem
openssl pkcs8 -topk8 -in end.key -v2 aes-256-cbc -passout pass:secret -out locked.key
