import { defaultLocalCache, systemRuntime, type TableEntry } from '@firebreak/core'
import { TableFile } from '../../packages/shield/src/table/table-file.ts'
import { Trouble } from '../../packages/shield/src/trouble/trouble.ts'

/** Writes a large table over and over, each time another version, until it is killed. */
const path = process.argv[2]!
let version = Number(process.argv[3])

function entry(index: number): TableEntry {
  return {
    redisClusterId: 'main',
    key: `k${index}`,
    strategy: defaultLocalCache,
    ruleId: `version ${version}`,
    reason: '',
    since: 0,
    until: 1,
  }
}

const source = () => {
  version++
  const entries = Array.from({ length: 2000 }, (_, index) => entry(index))
  return { snapshot: { epoch: 'e', version, entries, rules: [], isOff: false }, hubOffsetMs: 0 }
}
// As often as it can.
const clock = { now: () => 0 }
const timers = { ...systemRuntime.timers, setTimeout: (run: () => void) => systemRuntime.timers.setTimeout(run, 0) }
const file = new TableFile(path, source, { ...systemRuntime, clock, timers, trouble: new Trouble() })
setInterval(() => file.changed(), 1)
process.stdout.write('writing\n')
