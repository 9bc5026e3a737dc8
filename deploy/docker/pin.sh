#!/bin/sh
# Prints images by the digests that their tags have now, as variables for docker build and for compose:
#   sh deploy/docker/pin.sh > deploy/compose/.env
# Look at what changed before you take it over.
set -eu
pin() {
  digest=$(docker buildx imagetools inspect "$2" --format '{{json .Manifest.Digest}}' | tr -d '"')
  case "$digest" in sha256:*) ;; *) echo "no digest of $2" >&2; exit 1 ;; esac
  echo "$1=$2@$digest"
}
pin NODE_IMAGE node:24-bookworm-slim
pin REDIS_IMAGE redis:7
pin PROMETHEUS_IMAGE prom/prometheus:v3
pin GRAFANA_IMAGE grafana/grafana:12.0.0
