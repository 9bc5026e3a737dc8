import { spawn, spawnSync } from 'node:child_process'
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { freePort, startChild, startRedis } from '@firebreak/testkit'
import type { RunResults, Suite, Way } from './suite.ts'

const inside = (name: string) => join(import.meta.dirname, 'inside', name)

/** Where and how long a suite runs. */
export interface RunOptions {
  readonly folder: string
  /** Files of results and outputs of every way are left here. */
  readonly reports: string
  /** A run that takes longer is ended; its tests count as far as it got. */
  readonly maxMs: number
  /** More words for the suite's command: some of its files, or a pattern of names. */
  readonly more?: readonly string[]
}

/** How a run ended: `broken off` by itself before its last test. */
export type RunEnd = 'complete' | 'out of time' | 'broken off'

/** The result of one run. */
export interface SuiteRun {
  readonly way: Way
  readonly results: RunResults
  /** The totals of the protected clients or proxies; undefined if nothing was protected. */
  readonly facts: SuiteFacts | undefined
  readonly seconds: number
  readonly end: RunEnd
}

/** Sums over the processes of a run: a suite in which nothing was hot would show nothing. */
export interface SuiteFacts {
  /** Clients that were protected, or connections that a proxy took. */
  readonly clients: number
  /** Clients that `protect` refused. */
  readonly refused: number
  /** Keys that were made hot. */
  readonly keys: number
  /** Replies that were read to be kept, and reads that these answered. */
  readonly loads: number
  readonly localHits: number
  readonly copyReads: number
  readonly warnings: readonly string[]
}

/** Runs a suite in one way, on servers of its own. */
export async function runSuite(suite: Suite, way: Way, options: RunOptions): Promise<SuiteRun> {
  const { folder, reports, maxMs, more = [] } = options
  mkdirSync(reports, { recursive: true })
  const results = join(reports, `${way}.results`)
  const facts = join(reports, `${way}.facts`)
  const started = join(reports, `${way}.started`)
  for (const file of [results, facts, started]) rmSync(file, { force: true })
  const port = suite.port ?? (await freePort())
  const stage = suite.startsServers === true ? undefined : await openStage(port, way, facts)
  const begun = Date.now()
  let ended: { output: string; isOutOfTime: boolean }
  try {
    const command = suite.command({ folder, port, results, way })
    const path = suite.startsServers === true ? `${inside('')}:${process.env['PATH']}` : process.env['PATH']
    const env = {
      ...process.env,
      PATH: path,
      REDIS_PORT: String(port),
      ...command.env,
      FIREBREAK_SUITE_STARTED: started,
      ...(way === 'proxy' && { FIREBREAK_SUITE_PROXY: inside('hot-proxy.mjs'), FIREBREAK_SUITE_FACTS: facts }),
      ...(way !== 'plain' && way !== 'proxy' && protection(suite, way, folder, facts)),
    }
    ended = await runCommand(
      command.program,
      [...command.args, ...(suite.leaveOut?.[way]?.words ?? []), ...more],
      { cwd: command.cwd ?? folder, env },
      { maxMs, log: join(reports, `${way}.log`) },
    )
  } finally {
    endStarted(started)
    await stage?.()
  }
  const seconds = (Date.now() - begun) / 1000
  const { output, isOutOfTime } = ended
  const written = existsSync(results) ? readFileSync(results, 'utf8') : ''
  const end = isOutOfTime ? 'out of time' : suite.hasEnded(written, output) ? 'complete' : 'broken off'
  return { way, results: suite.read(written, output), facts: readFacts(facts), seconds, end }
}

/** The environment in which every client of the suite's processes is protected. */
function protection(suite: Suite, way: Way, folder: string, facts: string): Record<string, string> {
  const order = { way, facts, folder, own: suite.own?.(folder), packages: suite.packages ?? [] }
  const preload = pathToFileURL(inside('protect-clients.mjs')).href
  return { NODE_OPTIONS: `--import ${preload}`, FIREBREAK_SUITE: JSON.stringify(order) }
}

/** Ends the servers that a suite started with `docker` and did not remove. */
function endStarted(file: string): void {
  if (!existsSync(file)) return
  const running = new Set<string>()
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    if (line.startsWith('+')) running.add(line.slice(1))
    else running.delete(line.slice(1))
  }
  rmSync(file)
  for (const pids of running) spawnSync(process.execPath, [inside('docker.mjs'), 'rm', pids])
}

/** A Redis on the port, or a proxy there with a Redis behind it; returns how to end them. */
async function openStage(port: number, way: Way, facts: string): Promise<() => Promise<void>> {
  if (await answers(port)) throw new Error(`Port ${port} is in use, and the suite deletes all that is there`)
  const more = ['--protected-mode', 'no', '--databases', '16']
  const server = await startRedis({ args: more, ...(way !== 'proxy' && { port }) })
  if (way !== 'proxy') return () => server.stop()
  const proxy = startChild(process.execPath, [inside('hot-proxy.mjs'), String(port), String(server.port)], {
    env: { ...process.env, FIREBREAK_SUITE_FACTS: facts },
  })
  await proxy.printed(/ready/)
  return async () => {
    await proxy.stop()
    await server.stop()
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const end = (value: boolean) => {
      socket.destroy()
      resolve(value)
    }
    socket.on('connect', () => end(true)).on('error', () => end(false))
  })
}

async function runCommand(
  program: string,
  args: readonly string[],
  { cwd, env }: { cwd: string; env: NodeJS.ProcessEnv },
  { maxMs, log }: { maxMs: number; log: string },
): Promise<{ output: string; isOutOfTime: boolean }> {
  rmSync(log, { force: true })
  // A separate process group: processes that the suite leaves running end with it.
  const child = spawn(program, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  const take = (bytes: Buffer) => {
    output += bytes.toString('utf8')
    appendFileSync(log, bytes)
  }
  child.stdout.on('data', take)
  child.stderr.on('data', take)
  let isOutOfTime = false
  const endGroup = () => {
    try {
      process.kill(-child.pid!, 'SIGKILL')
    } catch {
      // All of it has ended.
    }
  }
  process.once('exit', endGroup)
  const timer = setTimeout(() => {
    isOutOfTime = true
    endGroup()
  }, maxMs)
  await new Promise<void>((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', () => resolve())
  })
  clearTimeout(timer)
  process.off('exit', endGroup)
  endGroup()
  return { output, isOutOfTime }
}

function readFacts(file: string): SuiteFacts | undefined {
  if (!existsSync(file)) return undefined
  const all = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as SuiteFacts)
  const sum = (name: Exclude<keyof SuiteFacts, 'warnings'>) => all.reduce((total, one) => total + one[name], 0)
  return {
    clients: sum('clients'),
    refused: sum('refused'),
    loads: sum('loads'),
    localHits: sum('localHits'),
    copyReads: sum('copyReads'),
    keys: sum('keys'),
    warnings: [...new Set(all.flatMap(({ warnings }) => warnings))],
  }
}
