import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type FakedClock, type GuardedChild, startSource, temporaryFolder } from '@firebreak/testkit'
import type { IssuerOrders } from './issuer.ts'

/** Starts a process that issues snowflakes; `atStart` is called when it is about to read its clock. */
export async function startIssuer(orders: IssuerOrders, clock?: FakedClock, atStart = () => {}): Promise<GuardedChild> {
  const start = clock === undefined ? startSource : clock.startSource.bind(clock)
  const issuer = new URL('./issuer.ts', import.meta.url)
  const child = start(issuer, [JSON.stringify(orders)], { stdio: ['pipe', 'pipe', 'pipe'] })
  await child.printed(/ready/, 90_000)
  atStart()
  child.process.stdin!.write('go\n')
  return child
}

/** The ids that issuers wrote, whole ones only: a killed process may leave a part of the last. */
export function readIds(path: string): BigUint64Array {
  const bytes = readFileSync(path)
  const copy = new Uint8Array(bytes.length - (bytes.length % 8))
  copy.set(bytes.subarray(0, copy.length))
  return new BigUint64Array(copy.buffer)
}

/** How many ids occur more than once, over all lists. */
export function countDuplicates(lists: readonly BigUint64Array[]): number {
  const all = new BigUint64Array(lists.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const list of lists) {
    all.set(list, at)
    at += list.length
  }
  all.sort()
  let duplicates = 0
  for (let index = 1; index < all.length; index++) if (all[index] === all[index - 1]) duplicates++
  return duplicates
}

/** A running `firebreak ids`. */
export interface IdsProcess {
  readonly child: GuardedChild
  readonly url: string
  readonly respPort: number
  /** The worker id, undefined without snowflakes. */
  readonly workerId: number | undefined
}

const main = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url))

/** Starts `firebreak ids` on free ports, in a folder of its own; does not wait. */
export function spawnIds(args: readonly string[], options: { folder?: string; clock?: FakedClock } = {}): GuardedChild {
  const cwd = options.folder ?? temporaryFolder('ids')
  const ports = [...(args.includes('--port') ? [] : ['--port', '0']), '--resp-port', '0']
  const start = options.clock === undefined ? startSource : options.clock.startSource.bind(options.clock)
  return start(main, ['ids', ...ports, ...args], { cwd })
}

/** Starts `firebreak ids` and waits until it serves. */
export async function startIds(
  args: readonly string[],
  options: { folder?: string; clock?: FakedClock } = {},
): Promise<IdsProcess> {
  const child = spawnIds(args, options)
  const match = await child.printed(/ids: (http:\/\/\S+), redis:\/\/127\.0\.0\.1:(\d+), (?:worker (\d+)|no)/, 90_000)
  const [, url, respPort, workerId] = match
  return {
    child,
    url: url!,
    respPort: Number(respPort),
    workerId: workerId === undefined ? undefined : Number(workerId),
  }
}

/** One GET: its status and body. */
export async function get(url: string): Promise<{ status: number; body: string }> {
  const response = await fetch(url)
  return { status: response.status, body: await response.text() }
}
