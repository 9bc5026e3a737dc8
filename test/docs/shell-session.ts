import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePorts, type RedisCluster, type RedisServer } from '@firebreak/testkit'
import type { CodeBlock } from './pages.ts'
import { root } from './pages.ts'

const built = join(root, 'packages/cli/dist/main.js')

/** The servers that replace the addresses in the pages. */
export interface Stage {
  readonly redis: RedisServer
  readonly cluster: RedisCluster
  readonly hubUrl: string
  /** `host:port` of what only some pages name. */
  readonly nats: string
  readonly kafka: string
  readonly etcd: string
}

export interface Session {
  readonly folder: string
  readonly env: NodeJS.ProcessEnv
  /** Where the page's webhooks go. */
  readonly webhookPort: number
}

/** Files that a page shows, by the language of its block, under the names that its commands use. */
const files: Readonly<Record<string, string>> = { python: 'app.py', php: 'app.php' }

/** Writes a page's commands as one session, with its files in place when they are needed and its addresses replaced. */
export async function writeSession(
  folder: string,
  blocks: readonly CodeBlock[],
  stage: Stage,
  addressed: (text: string) => string,
): Promise<Session> {
  mkdirSync(join(folder, 'firebreak-data'), { recursive: true })
  const [idsPort, respPort, proxyPort, upPort, ...others] = (await freePorts(11)) as [number, number, number, number]
  const names = ['7071', '7072', '7073', '7090', '6390', '6391', '6381']
  const local = new Map<string, number>(names.map((port, index) => [port, (others as number[])[index]!]))
  // If a page starts everything itself, its other commands refer to that.
  const isUp = blocks.some(({ language, text }) => language === 'sh' && /^(npx )?firebreak up\b/m.test(text))
  const hubUrl = isUp ? `http://127.0.0.1:${upPort}` : stage.hubUrl
  const placed = (text: string) =>
    addressed(text.replaceAll('http://127.0.0.1:7070', hubUrl)).replaceAll(/\b6380\b/g, String(proxyPort))
  const { [0]: first } = stage.cluster.addresses
  const ported = (script: string) =>
    placed(script)
      .replaceAll(/http:\/\/hub-\d:7070/g, hubUrl)
      .replaceAll(/redis:\/\/host:6379|redis:\/\/10\.0\.0\.[159]:6379/g, stage.redis.url)
      .replaceAll(/nats:\/\/10\.0\.0\.3:4222/g, stage.nats)
      .replaceAll(/kafka:\/\/[\d.:,]+/g, stage.kafka)
      .replaceAll(/etcd:\/\/[\d.:,]+/g, `etcd://${stage.etcd}`)
      .replaceAll(/10\.0\.0\.\d:7000/g, `127.0.0.1:${first!.port}`)
      .replaceAll(':8070', `:${idsPort}`)
      .replaceAll('-p 8071', `-p ${respPort}`)
      .replaceAll('redis-cli --eval', `redis-cli -p ${stage.redis.port} --eval`)
      .replaceAll('FIREBREAK_TOKEN=…', 'FIREBREAK_TOKEN=none-needed')
      .replaceAll(/\b(707[123]|7090|639[01]|6381)\b/g, (port) => String(local.get(port) ?? port))
      // Commands that the page itself runs in the background are left alone.
      .replaceAll(/^firebreak hub (.*&.*)$/gm, 'SHIM_FOREGROUND=1 firebreak hub $1')
      // It reads until it is ended.
      .replaceAll(
        /^node app\.mjs$/gm,
        'node app.mjs > app.log 2>&1 &\nuntil grep -q hot, app.log; do kill -0 $! || exit 1; sleep 0.1; done',
      )
      // A busy machine may not bring four processes, or a loop in another language, over a thousand reads a second.
      .replaceAll(/firebreak drill( +#)/gm, 'firebreak drill --rounds 1 --clients 2 --threshold 200$1')
      .replaceAll(/^python3 app\.py$/gm, 'firebreak rules apply slow-machine.yaml\n$&')
      // A process says once a second how its watchers are.
      .replaceAll(
        /^(npx firebreak hosts)( +#.*tracking:live.*)$/gm,
        'until $1 | grep -q tracking:live; do kill -0 $! || exit 1; sleep 0.1; done\n$1$2',
      )
      // It does not end on its own, in a terminal that nobody watches.
      .replaceAll(/firebreak top( +#|$)/gm, 'firebreak top --once$1')
  const slow =
    "- { id: slow-machine, glob: '*', threshold: 20, minHoldMs: 120000, strategy: LocalCache, priority: 9 }\n"
  writeFileSync(join(folder, 'slow-machine.yaml'), slow)
  writeFileSync(join(folder, 'sale-keys.txt'), 'product_100\nproduct_101\n')
  for (const { language, text } of blocks) {
    if (text.includes('peek(redis')) writeFileSync(join(folder, 'app.mjs'), placed(text))
    else if (files[language] !== undefined) {
      writeFileSync(join(folder, files[language]), text.replaceAll('6380', String(proxyPort)))
    }
  }
  const steps = blocks.flatMap(({ language, text, place }) => {
    // A page also shows files that its next commands read.
    if (language === 'yaml') return [`cat > rules.yaml <<'END-OF-BLOCK'\n${text}\nEND-OF-BLOCK`]
    return language === 'sh' ? [`echo '== ${place}'\n${ported(text)}`] : []
  })
  const prelude = `set -eu -o pipefail
cleanup() { kill $(jobs -p) 2>/dev/null || :; for file in ${folder}/shim-*.pid; do [ -f "$file" ] && kill "$(cat "$file")" 2>/dev/null || :; done; }
trap cleanup EXIT
`
  writeFileSync(join(folder, 'session.sh'), `${prelude}${steps.join('\n')}\n`)
  writeShim(join(folder, 'bin'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  return {
    folder,
    webhookPort: local.get('7090')!,
    env: {
      ...process.env,
      PATH: `${join(folder, 'bin')}:${process.env['PATH']}`,
      NODE_OPTIONS: '',
      FIREBREAK_HUB: isUp ? undefined : hubUrl,
      REDIS_URL: stage.redis.url,
      FIREBREAK_PORT: String(upPort),
      FIREBREAK_HUB_PORT: '0',
      FIREBREAK_IDS_PORT: String(idsPort),
      FIREBREAK_IDS_RESP_PORT: String(respPort),
      FIREBREAK_PROXY_PORT: String(proxyPort),
      SHIM_FOLDER: folder,
      SHIM_FOREGROUND: '',
    },
  }
}

/**
 * `firebreak` and `npx firebreak` as installed; what runs until it is ended is put into the background once it is ready, in
 * the place of an earlier one of its kind. `npm install` has been done: test/packages does it as a user would.
 */
function writeShim(bin: string): void {
  mkdirSync(bin, { recursive: true })
  const shim = `#!/bin/bash
[ "$1" = firebreak ] && shift
case "$SHIM_FOREGROUND$1" in
up | hub | proxy | ids)
  pid="$SHIM_FOLDER/shim-$1.pid" log="$SHIM_FOLDER/shim-$1.log"
  [ -f "$pid" ] && kill "$(cat "$pid")" 2>/dev/null && while kill -0 "$(cat "$pid")" 2>/dev/null; do sleep 0.05; done
  '${process.execPath}' '${built}' "$@" >"$log" 2>&1 </dev/null &
  echo $! >"$pid"
  for _ in $(seq 1200); do
    grep -qE 'is up|^hub http|listens on|^ids: ' "$log" && exit 0
    kill -0 "$(cat "$pid")" 2>/dev/null || break
    sleep 0.05
  done
  cat "$log" >&2
  exit 1
  ;;
esac
exec '${process.execPath}' '${built}' "$@"
`
  symlinkSync(process.execPath, join(bin, 'node'))
  // Debian's own, which has python3-redis.
  symlinkSync('/usr/bin/python3', join(bin, 'python3'))
  for (const name of ['firebreak', 'npx']) writeFileSync(join(bin, name), shim, { mode: 0o755 })
  writeFileSync(join(bin, 'npm'), '#!/bin/sh\ncase "$1" in init | install) exit 0 ;; *) exit 1 ;; esac\n', {
    mode: 0o755,
  })
}
