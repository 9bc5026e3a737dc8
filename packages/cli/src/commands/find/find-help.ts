import { connectionFlags } from '../../connect/connection-flags.ts'
import { renderFlags } from '../../flags/flag-table.ts'
import { findFlags, lookFlags, outputFlags } from './find-flags.ts'

const shared = new Set([...lookFlags, ...outputFlags, ...connectionFlags].map(({ name }) => name))
const own = (subcommand: string) => renderFlags(findFlags[subcommand]!.filter(({ name }) => !shared.has(name)))

/** The whole help of `firebreak find`. */
export const findHelp = `Find hot and big keys on any Redis, right now, without installing anything in the application.

Examples:
  firebreak find hot --url redis://host:6379            LFU counters of the server
  firebreak find hot --monitor --duration 5s            what is being requested right now, in bursts
  sudo firebreak find hot --capture -i eth0             from network traffic, at no cost to Redis
  firebreak find hot --capture --file night.pcap        from a capture
  firebreak find hot --server                           ask Redis 8.6 or Valkey 9.2 itself
  firebreak find slots --monitor                        the node, the slot, the key
  firebreak find big                                    biggest keys of every type
  firebreak find big --rdb dump.rdb --top 50 --csv      from a backup
  firebreak find big --live --json > now.json           as a replica, without a file
  firebreak find advise --from now.json                 what to do about them
  firebreak find advise --apply split --key users --segments 200
  firebreak find big --fail-on 'bytes>100mb'            in CI: exit with 3 if there is one

Usage: firebreak find hot|big|slots|advise [OPTIONS]

find hot
${own('hot')}

find big
${own('big')}

find slots
${own('slots')}

find advise
${own('advise')}

All find commands
${renderFlags(lookFlags)}
${renderFlags(outputFlags)}

The server
${renderFlags(connectionFlags)}

Point it at any node of a cluster, and all nodes are read in parallel. Progress goes to stderr, data to stdout.
Ctrl-C prints what has been found so far. Bytes that are not text are shown as \\xHH.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 --fail-on was met.
`
