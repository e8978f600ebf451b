#!/bin/sh
# Runs a command of attestream with the user, folders and variables that the unit gives the service, such as: attestream.sh preflight
set -e
set -- /opt/attestream/node_modules/.bin/node src/cli/main.ts "$@"
while read -r directive; do
  set -- -p "$directive" "$@"
done <<END
$(grep -E '^(User|WorkingDirectory|Environment|EnvironmentFile|StateDirectory|StateDirectoryMode|CacheDirectory)=' /etc/systemd/system/attestream.service)
END
exec systemd-run --quiet --pipe --wait --collect "$@"
