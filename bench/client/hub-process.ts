import { createInterface } from 'node:readline'
import { TestHub } from '@firebreak/testkit'

/** A hub in a process of its own, so that its work is not counted as the client's: `heat KEY` on stdin makes a key hot. */
const hub = await TestHub.start()
hub.heartbeatMs = 1000
process.stdout.write(`hub ${hub.url}\n`)
createInterface({ input: process.stdin }).on('line', (line) => {
  const [verb, key] = line.split(' ')
  if (verb === 'heat') hub.heat('main', [key!])
})
setInterval(() => {
  hub.reports.length = 0
  if (hub.statuses.splice(0).some(({ counters }) => counters.localHits > 0)) process.stdout.write('serving\n')
}, 50)
