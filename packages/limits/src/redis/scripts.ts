import { defineScript, loadScript, type RedisScript } from '@firebreak/redis'

/** The algorithms as the scripts name them. */
export type AlgorithmName = 'drain' | 'window' | 'counter' | 'buckets' | 'log' | 'concurrency'

const file = (name: string) => loadScript(new URL(`./lua/${name}.lua`, import.meta.url)).source

type Call = 'take' | 'all' | 'refund' | 'block' | 'rules'

const parts: Record<AlgorithmName | Call | 'time' | 'states' | 'algorithms', string> = {
  time: file('time'),
  states: file('states'),
  algorithms: file('algorithms'),
  drain: file('drain'),
  window: file('window'),
  counter: file('counter'),
  buckets: file('buckets'),
  log: file('log'),
  concurrency: file('concurrency'),
  take: file('take'),
  all: file('all'),
  refund: file('refund'),
  block: file('block'),
  rules: file('rules'),
}

const made = new Map<string, RedisScript>()

/**
 * The script of a call with the algorithms that it needs: only those parts are joined, so that a server compiles and
 * runs nothing else.
 */
export function scriptOf(call: Call, algorithms: readonly AlgorithmName[]): RedisScript {
  const needed = [...new Set(algorithms)].sort()
  const name = `limits-${[call, ...needed].join('-')}`
  let script = made.get(name)
  if (script === undefined) {
    const engine = needed.length > 0 ? [parts.algorithms, ...needed.map((algorithm) => parts[algorithm])] : []
    script = defineScript(name, [parts.time, parts.states, ...engine, parts[call]].join('\n'))
    made.set(name, script)
  }
  return script
}

const even: Partial<Record<AlgorithmName, RedisScript>> = {
  drain: defineScript('limits-take-even-drain', [parts.time, parts.states, file('take-drain')].join('\n')),
  window: defineScript('limits-take-even-window', [parts.time, parts.states, file('take-window')].join('\n')),
}

/** The script for takes of equal cost: written out for the most used algorithms. */
export function evenTakeScript(algorithm: AlgorithmName): RedisScript {
  return even[algorithm] ?? scriptOf('take', [algorithm])
}
