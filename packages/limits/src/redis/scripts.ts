import { defineScript, loadScript, type RedisScript } from '@firebreak/redis'

/** The algorithms as the scripts name them. */
export type AlgorithmName = 'drain' | 'window' | 'counter' | 'buckets' | 'log' | 'concurrency'

const file = (name: string) => loadScript(new URL(`./lua/${name}.lua`, import.meta.url)).source

const parts: Record<AlgorithmName | 'time' | 'take' | 'all' | 'refund' | 'block' | 'rules', string> = {
  time: file('time'),
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
 * The script of a call with the algorithms that it needs: the parts are joined, so that a server compiles and runs no
 * more than those.
 */
export function scriptOf(
  call: 'take' | 'all' | 'refund' | 'block' | 'rules',
  algorithms: readonly AlgorithmName[],
): RedisScript {
  const needed = [...new Set(algorithms)].sort()
  const name = `limits-${[call, ...needed].join('-')}`
  let script = made.get(name)
  if (script === undefined) {
    script = defineScript(name, [parts.time, ...needed.map((algorithm) => parts[algorithm]), parts[call]].join('\n'))
    made.set(name, script)
  }
  return script
}
