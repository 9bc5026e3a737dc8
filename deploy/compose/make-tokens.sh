#!/bin/sh
# Makes the tokens of this compose once: into the hub's store, and one file each for those who show them.
#   DATA     the hub's data folder
#   SECRETS  where the files go: app (the proxy), viewer (Prometheus), admin (you, for the console),
#            grafana (the password of its admin)
set -eu
umask 077
token() {
  [ -s "$SECRETS/$1" ] && return
  name=$1
  shift
  firebreak token create "$@" --data-folder "$DATA" > "$SECRETS/$name"
}
token app --app shop --service '*' --cluster '*'
token viewer --person prometheus --role viewer
token admin --person admin --role admin
if [ ! -s "$SECRETS/grafana" ]; then
  head -c 24 /dev/urandom | base64 | tr '+/' '-_' > "$SECRETS/grafana"
fi
# Prometheus and Grafana run as other users; nobody else has this volume.
chmod 711 "$SECRETS"
chmod 644 "$SECRETS/viewer" "$SECRETS/grafana"
# The image's own user runs the hub and the proxy.
if [ "$(id -u)" = 0 ] && id node > /dev/null 2>&1; then chown -R node:node "$DATA" "$SECRETS"; fi
echo "Tokens are in $SECRETS. The console's: docker compose -f deploy/compose/compose.yaml exec hub cat /secrets/admin"
