import { ErrorReply, MapReply, type RespValue } from '@firebreak/core/resp'
import { proxyCommands } from '../commands/proxy-command.ts'
import type { LatencyTable } from './latency-table.ts'
import type { SlowLog } from './slow-log.ts'

/** The data that the FIREBREAK command reports. */
export interface Observed {
  readonly slowLog: SlowLog
  infoSection(): string
  /** The times of each node by its address. */
  latencies(): Iterable<readonly [node: string, table: LatencyTable]>
}

const help = [
  'FIREBREAK <subcommand> [<arg>]. Subcommands are:',
  'INFO',
  '    The Firebreak section of INFO.',
  'PEEK <key>',
  '    The reply that GET would now get from memory, in an array; empty if there is none.',
  'SLOWLOG [<count>]',
  '    The newest slow requests: id, time, milliseconds, command, node, client, name.',
  'SLOWLOG RESET',
  '    Forgets them.',
  'LATENCY',
  '    By node and command: count, mean, p50, p99 and largest time in milliseconds.',
]

/** Answers FIREBREAK, the proxy's own command. */
export function firebreakCommand(args: readonly string[], observed: Observed): RespValue {
  const [subcommand = 'HELP', argument] = args.map((word) => word.toUpperCase())
  switch (subcommand) {
    case 'INFO':
      return Buffer.from(observed.infoSection())
    case 'SLOWLOG':
      if (argument === 'RESET') {
        observed.slowLog.reset()
        return 'OK'
      }
      return observed.slowLog
        .newest(Number(argument) || 10)
        .map(({ id, atMs, elapsedMs, command, node, client, clientName }) => [
          id,
          Math.floor(atMs / 1000),
          text(elapsedMs.toFixed(3)),
          text(command),
          text(node),
          text(client),
          text(clientName),
        ])
    case 'LATENCY':
      return [...observed.latencies()].map(([node, table]) => [
        text(node),
        new MapReply(
          [...table.summaries()].flatMap(([id, summary]) => [text(proxyCommands[id]!.name), timesOf(summary)]),
        ),
      ])
    case 'PEEK':
      // A proxy with a shield has already answered.
      return []
    case 'HELP':
      return help
    default:
      return new ErrorReply(`ERR unknown subcommand '${args[0]}'. Try FIREBREAK HELP.`)
  }
}

function timesOf(summary: { count: number; meanMs: number; p50Ms: number; p99Ms: number; maxMs: number }): MapReply {
  return new MapReply(
    Object.entries(summary).flatMap(([name, value]) => [text(name), name === 'count' ? value : text(value.toFixed(3))]),
  )
}

function text(value: string): Uint8Array {
  return Buffer.from(value)
}
