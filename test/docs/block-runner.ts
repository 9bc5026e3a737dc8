// Imports one block after the other, each a module of its own, and uses what it made: a client must answer, an application
// must serve. Prints a line of JSON for each; started by run-blocks.test.ts with the servers' addresses.
import { pathToFileURL } from 'node:url'

/** The results of a block, under the names that the pages use. */
interface Made {
  readonly redis?: { set(key: string, value: string): Promise<unknown>; get(key: string): Promise<unknown> }
  readonly port?: number
  readonly app?: { request?(path: string): Promise<Response> }
  /** What Nest's service found. */
  readonly found?: string | null
  readonly hub?: { readonly url: string; close(): Promise<void> }
}

/** The helpers that the transformed blocks call for decorators: TypeScript's, under the names that Oxc gives them. */
const babelHelpers = {
  decorate: (decorators: readonly ((target: object) => unknown)[], target: object) =>
    decorators.reduceRight((given, decorator) => (decorator(given) as object | undefined) ?? given, target),
  decorateParam:
    (index: number, decorator: (target: object, key: string | undefined, index: number) => void) =>
    (target: object, key?: string) =>
      decorator(target, key, index),
}
Object.assign(globalThis, { babelHelpers })

const timeoutMs = 30_000
let strayError: unknown
process.on('unhandledRejection', (error) => {
  strayError ??= error
})

for (const file of process.argv.slice(2)) {
  strayError = undefined
  let problem: unknown
  try {
    await within(use(file))
    problem = strayError
  } catch (error) {
    problem = error
  }
  const said =
    problem === undefined ? undefined : problem instanceof Error ? (problem.stack ?? problem.message) : String(problem)
  process.stdout.write(`${JSON.stringify({ file, problem: said })}\n`)
}
process.exit(0)

async function use(file: string): Promise<void> {
  // Of a CommonJS module all exports are in the default one.
  const module = (await import(pathToFileURL(file).href)) as { made?: Made; default?: { made?: Made } }
  const made = module.made ?? module.default?.made ?? {}
  const { redis, port, app, hub, found } = made
  if (redis !== undefined) {
    await redis.set('product_100', 'a kettle')
    same(await redis.get('product_100'), 'a kettle')
  }
  if (port !== undefined) same(await (await fetch(`http://127.0.0.1:${port}/products/100`)).text(), 'a kettle')
  if (typeof app?.request === 'function') same(await (await app.request('/products/100')).text(), 'a kettle')
  if (found !== undefined) same(found, 'a kettle')
  if (hub !== undefined) {
    same((await fetch(`${hub.url}/livez`)).status, 200)
    await hub.close()
  }
}

function same(given: unknown, wanted: unknown): void {
  if (given !== wanted) throw new Error(`${JSON.stringify(given)} instead of ${JSON.stringify(wanted)}`)
}

function within<T>(work: Promise<T>): Promise<T> {
  const late = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error(`not done after ${timeoutMs} ms`)), timeoutMs)
  })
  return Promise.race([work, late])
}
