// Stands in for docker where a suite starts its servers with it: containers become processes of the installed server,
// in the proxy's way those that are no node of a cluster stand behind a proxy.
import { spawn } from 'node:child_process'
import { appendFileSync, closeSync, mkdtempSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const [verb, ...words] = process.argv.slice(2)
const folder = () => mkdtempSync(join(tmpdir(), 'firebreak-suite-'))

/** Starts a process that outlives this one; gives its id. */
function start(program, args, cwd) {
  const output = openSync(join(cwd, 'output'), 'a')
  const child = spawn(program, args, { cwd, detached: true, stdio: ['ignore', output, output] })
  child.unref()
  closeSync(output)
  return child.pid
}

const answers = (port) =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false))
    socket.on('close', () => {}).setTimeout(500, () => socket.destroy())
    socket.once('connect', () => socket.end())
  })

const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })

async function run() {
  const settings = new Map()
  const mounts = []
  let at = 0
  for (; at < words.length && words[at].startsWith('-'); at++) {
    if (words[at] === '-e') settings.set(...words[++at].split(/=(.*)/s, 2))
    else if (words[at] === '-v') mounts.push(words[++at].split(':')[0])
    else if (words[at] === '--network') at++
  }
  const args = words.slice(at + 1)
  const port = settings.get('PORT')
  if (port === undefined || settings.has('TLS_ENABLED')) throw new Error('only plain servers can be started here')
  const server = process.env['FIREBREAK_REDIS_SERVER'] ?? 'redis-server'
  const cwd = folder()
  const pids = []
  if (mounts.length > 0) {
    const file = join(cwd, 'sentinel.conf')
    writeFileSync(file, readFileSync(mounts[0]))
    pids.push(start(server, [file, '--sentinel'], cwd))
  } else {
    const isBehindProxy = process.env['FIREBREAK_SUITE_PROXY'] !== undefined && !args.includes('--cluster-enabled')
    const own = isBehindProxy ? String(await freePort()) : port
    const shape = ['--port', own, '--save', '', '--dir', cwd, '--enable-debug-command', 'yes', '--protected-mode', 'no']
    pids.push(start(server, [...shape, ...args], cwd))
    while (!(await answers(own))) await new Promise((resolve) => setTimeout(resolve, 20))
    if (isBehindProxy) {
      pids.push(start(process.execPath, [process.env['FIREBREAK_SUITE_PROXY'], port, own], cwd))
      while (!(await answers(port))) await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  note(`+${pids.join('-')}`)
  process.stdout.write(`${pids.join('-')}\n`)
}

/** What still runs when the suite ends is ended by the runner. */
function note(line) {
  const file = process.env['FIREBREAK_SUITE_STARTED']
  if (file !== undefined) appendFileSync(file, `${line}\n`)
}

if (verb === 'run') {
  run().catch(({ message }) => {
    process.stderr.write(`${message}\n`)
    process.exit(1)
  })
} else if (verb === 'rm') {
  const [server, proxy] = words.at(-1).split('-')
  note(`-${words.at(-1)}`)
  if (proxy !== undefined) {
    // It writes down what it did.
    send(Number(proxy), 'SIGTERM')
    for (let turn = 0; turn < 100 && send(Number(proxy), 0); turn++)
      await new Promise((resolve) => setTimeout(resolve, 20))
    send(Number(proxy), 'SIGKILL')
  }
  send(Number(server), 'SIGKILL')
} else process.exit(1)

/** False where the process has ended. */
function send(pid, signal) {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}
