import { spawn } from 'node:child_process'
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
  /** A run that takes longer is ended; its tests count as far as it came. */
  readonly maxMs: number
  /** More words for the suite's command: some of its files, or a pattern of names. */
  readonly more?: readonly string[]
}

/** What one run came to. */
export interface SuiteRun {
  readonly way: Way
  readonly results: RunResults
  /** What the protected clients did together; undefined where none was protected. */
  readonly facts: SuiteFacts | undefined
  readonly seconds: number
  readonly isCutOff: boolean
}

/** Sums over the processes of a run: a suite in which nothing was hot would show nothing. */
export interface SuiteFacts {
  readonly clients: number
  /** Clients that `protect` did not take. */
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
  for (const file of [results, facts]) rmSync(file, { force: true })
  const port = suite.port ?? (await freePort())
  const stage = suite.startsServers === true ? undefined : await openStage(port, way)
  try {
    const command = suite.command({ folder, port, results, way })
    const path = suite.startsServers === true ? `${inside('')}:${process.env['PATH']}` : process.env['PATH']
    const env = {
      ...process.env,
      PATH: path,
      REDIS_PORT: String(port),
      ...command.env,
      ...(way === 'proxy' && { FIREBREAK_SUITE_PROXY: inside('hot-proxy.mjs') }),
      ...(way !== 'plain' && way !== 'proxy' && protection(suite, way, folder, facts)),
    }
    const begun = Date.now()
    const { output, isCutOff } = await runCommand(
      command.program,
      [...command.args, ...more],
      { cwd: command.cwd ?? folder, env },
      { maxMs, log: join(reports, `${way}.log`) },
    )
    const written = existsSync(results) ? readFileSync(results, 'utf8') : ''
    const seconds = (Date.now() - begun) / 1000
    return { way, results: suite.read(written, output), facts: readFacts(facts), seconds, isCutOff }
  } finally {
    await stage?.()
  }
}

/** The environment in which every client of the suite's processes is protected. */
function protection(suite: Suite, way: Way, folder: string, facts: string): Record<string, string> {
  const order = { way, facts, folder, own: suite.own?.(folder), packages: suite.packages ?? [] }
  const preload = pathToFileURL(inside('protect-clients.mjs')).href
  return { NODE_OPTIONS: `--import ${preload}`, FIREBREAK_SUITE: JSON.stringify(order) }
}

/** A Redis on the port, or a proxy there with a Redis behind it; gives what ends them. */
async function openStage(port: number, way: Way): Promise<() => Promise<void>> {
  if (await answers(port)) throw new Error(`Port ${port} is in use, and the suite deletes all that is there`)
  const more = ['--protected-mode', 'no', '--databases', '16']
  const server = await startRedis({ args: more, ...(way !== 'proxy' && { port }) })
  if (way !== 'proxy') return () => server.stop()
  const proxy = startChild(process.execPath, [inside('hot-proxy.mjs'), String(port), String(server.port)])
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
): Promise<{ output: string; isCutOff: boolean }> {
  rmSync(log, { force: true })
  // A group of its own: what the suite leaves running ends with it.
  const child = spawn(program, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  const take = (bytes: Buffer) => {
    output += bytes.toString('utf8')
    appendFileSync(log, bytes)
  }
  child.stdout.on('data', take)
  child.stderr.on('data', take)
  let isCutOff = false
  const endGroup = () => {
    try {
      process.kill(-child.pid!, 'SIGKILL')
    } catch {
      // All of it has ended.
    }
  }
  process.once('exit', endGroup)
  const timer = setTimeout(() => {
    isCutOff = true
    endGroup()
  }, maxMs)
  await new Promise<void>((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', () => resolve())
  })
  clearTimeout(timer)
  process.off('exit', endGroup)
  endGroup()
  return { output, isCutOff }
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
