#!/bin/sh
# Renders the chart with Go's own templates and Sprig, which is what Helm does, and reads every object that comes out. No Helm and no
# cluster is needed, but three packages of Debian: golang-go golang-github-masterminds-sprig-dev golang-gopkg-yaml.v3-dev.
#
#   sh deploy/helm/try-chart.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE="$work/cache"
go build -o "$work/render" "$here/render.go"

# What must be given is asked for.
echo '{}' >"$work/none.yaml"
if "$work/render" "$here/firebreak" "$work/none.yaml" >"$work/out" 2>&1; then
  echo 'a hub without tokens was rendered' >&2
  exit 1
fi
grep -q 'hub.tokens.secretName is needed' "$work/out" || { cat "$work/out" >&2; exit 1; }

cat >"$work/least.yaml" <<'END'
hub: { tokens: { secretName: tokens } }
END
cat >"$work/most.yaml" <<'END'
hub:
  replicas: 3
  tokens: { secretName: tokens }
  store: { secretName: store }
  tls: { secretName: tls }
  config: { entryTtlMs: 60000, engines: ["main=redis://redis:6379"] }
  rules: [{ id: product, prefix: product_, threshold: 500, strategy: LocalCache }]
  allowedHosts: [hub.example]
  env: [{ name: TZ, value: UTC }]
  podAnnotations: { note: "yes" }
proxy:
  enabled: true
  allowAnyone: true
  upstream: { url: "redis://redis:6379" }
  token: { secretName: proxy-token }
  hubCa: { configMapName: company-ca }
  redisClusterId: main
  args: ["--max-clients", "20000"]
ingress: { enabled: true, host: firebreak.example, className: nginx, tlsSecretName: web, annotations: { note: "yes" } }
otlp: { endpoint: "http://collector:4318", headers: { secretName: otlp } }
serviceMonitor: { enabled: true, token: { secretName: viewer } }
networkPolicy: { hubFrom: [{ podSelector: {} }], proxyFrom: [{ namespaceSelector: {} }] }
END
expect() {
  "$work/render" "$here/firebreak" "$work/$1.yaml" >"$work/out"
  for word in $3; do
    grep -q -- "$word" "$work/out" || { echo "$1 does not say $word" >&2; exit 1; }
  done
  found=$(sed -n 's/^object: //p' "$work/out" | sort | tr '\n' ' ')
  [ "$found" = "$2 " ] || { echo "$1 gives: $found" >&2; exit 1; }
  echo "$1: $found"
}
expect least 'ConfigMap NetworkPolicy PodDisruptionBudget Service ServiceAccount StatefulSet' enableServiceLinks
expect most 'ConfigMap Deployment Ingress NetworkPolicy NetworkPolicy PodDisruptionBudget PodDisruptionBudget Service Service ServiceAccount ServiceMonitor ServiceMonitor StatefulSet' \
  'firebreak.example /etc/firebreak-hub-ca/ca.crt company-ca hub.example'
# As the guide has it, under the release name that gives services the names of our variables.
awk '/^```yaml/ { on = 1; next } /^```/ { on = 0 } on' "$here/../../docs/guides/deploy.md" >"$work/guide.yaml"
expect guide 'ConfigMap Deployment Ingress NetworkPolicy NetworkPolicy PodDisruptionBudget PodDisruptionBudget Service Service ServiceAccount StatefulSet' \
  'firebreak.example.org firebreak-web firebreak-hub-ca'
