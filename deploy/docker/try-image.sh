#!/bin/sh
# Builds the image from deploy/docker/Dockerfile, starts it, probes it and stops it, without Docker and without pulling an
# image: Debian's buildah (chroot isolation, vfs storage) on a base made by debootstrap, with Node from npm, under the name
# that the Dockerfile asks for. Run as root; needs buildah and debootstrap. Everything is in one folder, which goes at the end.
#
#   sh deploy/docker/try-image.sh [FOLDER]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
work=${1:-$(mktemp -d /var/tmp/firebreak-image.XXXXXX)}
base_name=docker.io/library/$(sed -n 's/^pin NODE_IMAGE //p' "$root/deploy/docker/pin.sh")
major=$(echo "$base_name" | sed 's/.*:\([0-9]*\).*/\1/')
buildah="buildah --root $work/storage --runroot $work/run --storage-driver vfs"
container=
pid=
finish() {
  status=$?
  if [ -n "$pid" ]; then kill "$pid" 2>/dev/null || :; fi
  $buildah rm --all >/dev/null 2>&1 || :
  rm -rf "$work"
  exit $status
}
trap finish EXIT
trap 'exit 130' INT TERM
mkdir -p "$work"

echo "base: Debian by debootstrap"
debootstrap --variant=minbase --include=ca-certificates bookworm "$work/base" http://deb.debian.org/debian >"$work/debootstrap.log" 2>&1 ||
  { tail -5 "$work/debootstrap.log" >&2; exit 1; }
echo "base: Node $major and npm from npm"
npm install --prefix "$work/node" --no-audit --no-fund --loglevel=error "node-linux-$(node -p process.arch)@$major" npm@11
cp "$work/node/node_modules/node-linux-$(node -p process.arch)/bin/node" "$work/base/usr/local/bin/node"
mkdir -p "$work/base/usr/local/lib/node_modules"
cp -R "$work/node/node_modules/npm" "$work/base/usr/local/lib/node_modules/npm"
ln -s ../lib/node_modules/npm/bin/npm-cli.js "$work/base/usr/local/bin/npm"
chroot "$work/base" useradd --create-home --uid 1000 --shell /bin/sh node
# Authorities that this machine trusts beside the usual ones: a registry may be behind one of them.
cp /etc/ssl/certs/ca-certificates.crt "$work/base/etc/ssl/certs/ca-certificates.crt"
container=$($buildah from scratch)
$buildah copy --quiet "$container" "$work/base" / >/dev/null
$buildah config --env NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt "$container"
$buildah commit --quiet "$container" "$base_name" >/dev/null
rm -rf "$work/base" "$work/node"
# The Dockerfile takes a base by its digest alone.
base=$base_name@$($buildah inspect --type image --format '{{.FromImageDigest}}' "$base_name")

echo "image: $base → firebreak"
$buildah build --isolation chroot --network host --pull=never --layers=false \
  --build-arg NODE_IMAGE="$base" --file "$root/deploy/docker/Dockerfile" --tag localhost/firebreak "$root" >"$work/build.log" 2>&1 ||
  { tail -30 "$work/build.log" >&2; exit 1; }

container=$($buildah from --pull=never localhost/firebreak)
echo "version:"
$buildah run --isolation chroot "$container" -- firebreak --version
port=$(node -e "const s=require('net').createServer().listen(0,'127.0.0.1',()=>{console.log(s.address().port);s.close()})")
$buildah run --isolation chroot "$container" -- firebreak hub --port "$port" --data-folder /data >"$work/hub.log" 2>&1 &
pid=$!
tries=0
until curl -fsS "http://127.0.0.1:$port/readyz" >/dev/null 2>&1; do
  tries=$((tries + 1))
  if [ "$tries" -ge 60 ]; then
    echo "the hub did not become ready" >&2
    tail -20 "$work/hub.log" >&2
    exit 1
  fi
  sleep 1
done
curl -fsS "http://127.0.0.1:$port/livez" >/dev/null
echo "probes: /livez and /readyz answer"
curl -fsS "http://127.0.0.1:$port/" | grep -q 'id="page"'
echo "console: served"
kill -TERM "$pid"
wait "$pid" && code=0 || code=$?
pid=
if curl -fsS "http://127.0.0.1:$port/livez" >/dev/null 2>&1; then
  echo "the hub still answers after SIGTERM (exit code $code)" >&2
  exit 1
fi
echo "stopped: SIGTERM ended it (exit code $code)"
