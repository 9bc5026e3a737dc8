// One scan in a process of its own, as redis-cli is one: `node scan.ts hot|big PORT`; prints the milliseconds it took.
import { findBigByScan, findHotByScan } from '@firebreak/find'

const [kind, port] = process.argv.slice(2)
const target = { port: Number(port) }
const { isComplete, keys, tookMs } =
  kind === 'hot' ? await findHotByScan({ target, resampleMs: 0 }) : await findBigByScan({ target })
if (!isComplete || keys.length === 0) throw new Error('the scan found nothing')
process.stdout.write(String(tookMs))
