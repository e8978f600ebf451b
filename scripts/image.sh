#!/bin/sh
# `npm run image`: writes release/attestream-<version>.docker.tar and .oci.tar, the image of deploy/Containerfile, without a registry of
# images: in place of node:24-slim it makes a base with debootstrap. Runs as root on Debian: apt-get install buildah debootstrap.
set -eu
cd "$(dirname "$0")/.."

version=$(node -p 'require("./package.json").version')
work=$(mktemp -d)
buildah() { command buildah --storage-driver vfs --root "$work/storage" --runroot "$work/run" "$@"; }
trap 'buildah umount --all >/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

base=$(buildah from --name base scratch)
root=$(buildah mount "$base")
debootstrap --variant=minbase bookworm "$root"
# Beside what debootstrap took: fixes of bugs and of security.
read -r _ mirror _ <"$root/etc/apt/sources.list"
printf 'deb %s main\n' "${mirror%/} bookworm-updates" "${mirror%/}-security bookworm-security" >>"$root/etc/apt/sources.list"
install -m 0755 "$(node -p process.execPath)" "$root/usr/local/bin/node"
npm install --global --prefix "$root/usr/local" --no-audit --no-fund npm@11
buildah umount "$base" >/dev/null
buildah commit --rm "$base" attestream-base

buildah bud --format docker --isolation chroot --pull-never --squash --build-arg BASE=localhost/attestream-base \
  --secret id=authorities,src=/etc/ssl/certs/ca-certificates.crt --tag "localhost/attestream:$version" --file deploy/Containerfile release
for format in docker oci; do
  file="release/attestream-$version.$format.tar"
  rm -f "$file"
  buildah push "localhost/attestream:$version" "$format-archive:$file:localhost/attestream:$version"
done
ls -l release/*.tar
