import { getHeapStatistics } from 'node:v8'
import { FirebreakError } from '@firebreak/core'
import { type FuzzTarget, LawBroken } from './target.ts'

/** Memory that an input may take, whatever its length, and for each byte. */
const freeAllocation = 16 << 20
const allocationPerByte = 4096

/** How an input broke the law of a target. */
export interface Violation {
  /** The same for all inputs that break it in the same way: the smallest of them is looked for. */
  readonly kind: string
  readonly message: string
}

/**
 * The law: an input is taken, or refused by an error of ours with a code; it costs at most `freeCpuMs` and 10 µs of the
 * processor for each byte, and allocates at most 16 MiB and 4 KiB for each byte. Another program or a garbage collection
 * can make one run dear: what is too dear is run three times more, and the cheapest counts.
 */
export async function violationOf(target: FuzzTarget, input: Buffer): Promise<Violation | undefined> {
  const first = await measure(target, input)
  if (first.violation !== undefined) return first.violation
  const cpuMicros = (target.freeCpuMs ?? 50) * 1000 + input.length * (target.cpuMicrosPerByte ?? 10)
  const allocation = freeAllocation + input.length * allocationPerByte
  if (first.cpuMicros <= cpuMicros && first.allocated <= allocation) return undefined
  let cheapest = first
  for (let again = 0; again < 3; again++) {
    const next = await measure(target, input)
    cheapest = {
      violation: undefined,
      cpuMicros: Math.min(cheapest.cpuMicros, next.cpuMicros),
      allocated: Math.min(cheapest.allocated, next.allocated),
    }
  }
  if (cheapest.cpuMicros > cpuMicros) {
    const cost = `${Math.round(cheapest.cpuMicros / 1000)} ms of the processor for ${input.length} bytes`
    return { kind: 'processor time', message: `${cost}; at most ${Math.round(cpuMicros / 1000)} ms are allowed` }
  }
  if (cheapest.allocated > allocation) {
    return { kind: 'memory', message: `${cheapest.allocated >> 20} MiB allocated for ${input.length} bytes` }
  }
  return undefined
}

interface Measured {
  readonly violation: Violation | undefined
  readonly cpuMicros: number
  readonly allocated: number
}

async function measure(target: FuzzTarget, input: Buffer): Promise<Measured> {
  // A parser that keeps or changes its input gets a copy.
  const copy = Buffer.from(input)
  const heap = getHeapStatistics()
  const cpu = process.threadCpuUsage()
  let violation: Violation | undefined
  try {
    const running = target.run(copy)
    if (running !== undefined) await running
  } catch (error) {
    violation = describe(error)
  }
  const { user, system } = process.threadCpuUsage(cpu)
  const after = getHeapStatistics()
  const allocated = after.used_heap_size + after.external_memory - heap.used_heap_size - heap.external_memory
  return { violation, cpuMicros: user + system, allocated }
}

function describe(error: unknown): Violation | undefined {
  if (error instanceof FirebreakError && error.code.startsWith('FB_')) return undefined
  if (error instanceof LawBroken) return { kind: `law: ${error.message.slice(0, 30)}`, message: error.message }
  if (!(error instanceof Error)) return { kind: 'not an error', message: `${String(error)} was thrown` }
  const place =
    error.stack
      ?.split('\n')
      .find((line) => line.includes('/packages/'))
      ?.trim() ?? ''
  return { kind: `${error.name} ${place}`, message: `${error.name}: ${error.message} ${place}` }
}
