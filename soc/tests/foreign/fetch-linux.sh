#!/bin/sh
# Unpacks Debian's Linux and busybox for riscv64 into a directory, for the tests that boot them:
#
#     soc/tests/foreign/fetch-linux.sh target/foreign/linux
#
# Works on Debian and its relatives, without privileges: apt runs with a configuration of its own and changes nothing on the host.
# The archive is the one that the host uses already.
set -eu
into=$1
suite=trixie
keys=/usr/share/keyrings/debian-archive-keyring.gpg

# Configured sources are listed even before their first update, unlike what `apt-cache policy` shows.
archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep '/debian/$' | head -n 1)
[ -n "$archive" ] || { echo "no Debian archive in this host's apt sources: SKIPPED" >&2; exit 1; }

mkdir -p "$into"
into=$(cd "$into" && pwd)
root=$into/apt
mkdir -p "$root/etc/apt/apt.conf.d" "$root/etc/apt/preferences.d" "$root/state/lists/partial" "$root/cache/archives/partial"
: > "$root/status"
echo "deb [arch=riscv64 signed-by=$keys] $archive $suite main" > "$root/etc/apt/sources.list"
cat > "$root/apt.conf" <<CONF
Dir::Etc "$root/etc/apt";
Dir::State "$root/state";
Dir::State::status "$root/status";
Dir::Cache "$root/cache";
APT::Architecture "riscv64";
APT::Architectures "riscv64";
APT::Sandbox::User "$(id -un)";
CONF
export APT_CONFIG=$root/apt.conf

apt-get update -q
kernel=$(apt-cache depends linux-image-riscv64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\).*/\1/p' | head -n 1)
cd "$into"
apt-get download -q "$kernel" busybox-static
for package in ./*.deb; do
    dpkg-deb -x "$package" root
    rm "$package"
done
rm -r "$root"
echo "SOC_LINUX=$into/root"
