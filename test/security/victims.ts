import { readFileSync } from 'node:fs'
import { type GuardedChild, startSource } from '@firebreak/testkit'

/** A busy machine may give a process little. */
const startMs = 300_000

/** A server of ours that is attacked. */
export interface Victim {
  readonly child: GuardedChild
  readonly ports: { readonly http: number; readonly resp: number }
  /** Memory in use, in bytes. */
  rss(): number
  /** CPU used so far, user and system, in milliseconds. */
  cpuMs(): number
}

export type VictimKind = 'hub' | 'limits' | 'ids' | 'proxy'

/** `folder`: a built checkout whose servers are to be attacked. @default the sources of this one */
export async function startVictim(kind: VictimKind, options: object, folder?: string): Promise<Victim> {
  const args = [kind, JSON.stringify(options), ...(folder === undefined ? [] : [folder])]
  const child = startSource(new URL('./victim.ts', import.meta.url), args)
  const [, ports] = await child.printed(/listening (\{.*\})/, startMs)
  return {
    child,
    ports: JSON.parse(ports!),
    rss: () => Number(readFileSync(`/proc/${child.pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)![1]) * 1024,
    cpuMs: () => {
      // Fields 14 and 15 of the line; the second may hold blanks, and ends with the last bracket.
      const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8')
        .replace(/^.*\) /, '')
        .split(' ')
      return (Number(fields[11]) + Number(fields[12])) * 10
    },
  }
}
