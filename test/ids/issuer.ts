// A process that issues snowflake ids at full rate into a file, until it has enough or is killed.
// Arguments: one JSON object of IssuerOrders.
import { openSync, writeSync } from 'node:fs'
import { SnowflakeNode, ZooKeeperRegistry } from '@firebreak/ids'

export interface IssuerOrders {
  readonly servers: string
  readonly root: string
  readonly port: number
  readonly cacheFile: string
  /** Eight bytes an id, in the order of issue. */
  readonly output: string
  /** How many to issue; 0 for ever. */
  readonly count: number
}

const orders = JSON.parse(process.argv[2]!) as IssuerOrders
const address = { ip: '127.0.0.1', port: orders.port }

// The parent sets the clock while this process waits here, so that it is exact to the millisecond.
process.stdout.write('ready\n')
await new Promise((resolve) => process.stdin.once('data', resolve))
process.stdin.pause()
process.stdout.write(`clock ${Date.now()}\n`)

/** Starts the node; if that is refused, tries again and again, like a supervisor. */
async function start(): Promise<SnowflakeNode> {
  for (;;) {
    try {
      return await SnowflakeNode.start({
        // Nobody else can have this number here: waiting for another owner is tested elsewhere.
        settleMs: 200,
        registry: new ZooKeeperRegistry({
          servers: orders.servers,
          root: orders.root,
          address,
          sessionTimeoutMs: 4000,
        }),
        address,
        cacheFile: orders.cacheFile,
        onAlarm: ({ code }) => process.stdout.write(`alarm ${code}\n`),
      })
    } catch (error) {
      process.stdout.write(`refused ${(error as { code: string }).code}\n`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}
const node = await start()

const file = openSync(orders.output, 'a')
process.stdout.write(`serving ${node.workerId}\n`)
const batch = new BigUint64Array(5000)
const errors = new Map<string, number>()
let issued = 0

/** Issues a batch; ids count as given once they are in the file, as an answer counts once it is sent. */
function issue(): void {
  let filled = 0
  try {
    for (; filled < batch.length; filled++) batch[filled] = node.nextBigInt()
  } catch (error) {
    const { code } = error as { code: string }
    errors.set(code, (errors.get(code) ?? 0) + 1)
  }
  writeSync(file, batch.subarray(0, filled))
  issued += filled
}

const reporter = setInterval(() => {
  process.stdout.write(`${JSON.stringify({ issued, errors: Object.fromEntries(errors) })}\n`)
}, 50)
while (orders.count === 0 || issued < orders.count) {
  issue()
  await new Promise((resolve) => setImmediate(resolve))
}
clearInterval(reporter)
await node.close()
