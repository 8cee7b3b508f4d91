#!/usr/bin/env bash
# Makes the certificates of the tests of TLS anew, valid for 100 years but for one that has expired. The keys of the authorities are not
# kept. Nothing but these tests trusts them: end.key is for all to read.
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

# end FILE AUTHORITY USAGE NAMES FROM UNTIL: a certificate of end.key.
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
subjectAltName = $4
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
