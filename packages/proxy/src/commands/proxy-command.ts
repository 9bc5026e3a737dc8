import { allCommands, type CommandArgs, type CommandRow, NameTable } from '@firebreak/core/commands'

/**
 * How a command goes to Redis:
 *
 * | way       | meaning                                                                                             |
 * | --------- | --------------------------------------------------------------------------------------------------- |
 * | `shared`  | over a connection that clients share                                                                |
 * | `script`  | over a shared connection for scripts: a script that does not end must not hold up others' commands  |
 * | `info`    | shared, and the reply gets our section                                                              |
 * | `borrow`  | over a dedicated connection until its reply arrives: it may block, or concerns connections          |
 * | `pin`     | over a dedicated connection until what it began has ended: a transaction, a subscription            |
 * | `stay`    | over a dedicated connection from now on: it reads or changes the connection's own state             |
 * | `pipe`    | like `stay`, and from then on replies are not matched to requests: there may be none or many        |
 * | `session` | answered or carried out by the proxy: user, protocol, database                                      |
 * | `cluster` | about the cluster: answered by the proxy if it presents itself as one                               |
 * | `own`     | FIREBREAK: about the proxy itself                                                                  |
 */
export type CommandWay =
  | 'shared'
  | 'script'
  | 'info'
  | 'borrow'
  | 'pin'
  | 'stay'
  | 'pipe'
  | 'session'
  | 'cluster'
  | 'own'

/** What the reply to a command on a dedicated connection says about that connection. */
export type CommandMark =
  | 'multi'
  | 'exec'
  | 'discard'
  | 'watch'
  | 'unwatch'
  | 'subscribe'
  | 'unsubscribe'
  | 'select'
  | 'auth'
  | 'hello'
  | 'tracking'
  | 'unknown'
  | 'pause'
  | 'list'
  | 'row'
  | 'id'
  | 'kill'
  | 'name'

/** A command as the proxy sees it. */
export interface ProxyCommand {
  /** In capitals, such as `GET` or `CLIENT LIST`. */
  readonly name: string
  /** Its index in `proxyCommands`. */
  readonly id: number
  readonly row: CommandRow | undefined
  readonly way: CommandWay
  /** True for `shared`, the one comparison that most commands need. */
  readonly isShared: boolean
  /** True if it depends on the arguments whether the command waits. */
  readonly mayBlock: boolean
  readonly isWrite: boolean
  /** True if it only reads keys. */
  readonly isRead: boolean
  /** The position of its key if it always has exactly one, otherwise 0. */
  readonly keyIndex: number
  readonly mark: CommandMark | undefined
  readonly subcommands: NameTable<ProxyCommand> | undefined
}

const ways: Record<string, CommandWay> = {}
function go(way: CommandWay, names: string): void {
  for (const name of names.split(',')) ways[name.trim()] = way
}
go('session', 'HELLO,AUTH,SELECT,RESET,QUIT,CLIENT SETNAME,CLIENT GETNAME,CLIENT SETINFO')
go('pipe', 'MONITOR,SYNC,PSYNC,REPLCONF,CLIENT REPLY,SCRIPT DEBUG')
go('stay', 'CLIENT ID,CLIENT CACHING,CLIENT GETREDIR,CLIENT NO-EVICT,CLIENT NO-TOUCH,CLIENT CAPA')
go('stay', 'CLIENT IMPORT-SOURCE,READONLY,READWRITE,ASKING')
go('borrow', 'CLIENT KILL,CLIENT LIST,CLIENT INFO,CLIENT PAUSE,CLIENT UNPAUSE,CLIENT UNBLOCK,CLIENT TRACKINGINFO')
go('borrow', 'SHUTDOWN,FAILOVER,DEBUG')
go('pin', 'MULTI,WATCH,SUBSCRIBE,PSUBSCRIBE,SSUBSCRIBE,UNSUBSCRIBE,PUNSUBSCRIBE,SUNSUBSCRIBE,CLIENT TRACKING')
go('script', 'EVAL,EVALSHA,EVAL_RO,EVALSHA_RO,FCALL,FCALL_RO')
go('info', 'INFO')
go('cluster', 'CLUSTER SLOTS,CLUSTER SHARDS,CLUSTER NODES,CLUSTER INFO,CLUSTER MYID,CLUSTER REPLICAS,CLUSTER SLAVES')
go('cluster', 'CLUSTER KEYSLOT,CLUSTER COUNTKEYSINSLOT,CLUSTER GETKEYSINSLOT')

const marks: Record<string, CommandMark> = {
  MULTI: 'multi',
  EXEC: 'exec',
  DISCARD: 'discard',
  WATCH: 'watch',
  UNWATCH: 'unwatch',
  SUBSCRIBE: 'subscribe',
  PSUBSCRIBE: 'subscribe',
  SSUBSCRIBE: 'subscribe',
  UNSUBSCRIBE: 'unsubscribe',
  PUNSUBSCRIBE: 'unsubscribe',
  SUNSUBSCRIBE: 'unsubscribe',
  SELECT: 'select',
  AUTH: 'auth',
  HELLO: 'hello',
  'CLIENT TRACKING': 'tracking',
  'CLIENT LIST': 'list',
  'CLIENT INFO': 'row',
  'CLIENT ID': 'id',
  'CLIENT KILL': 'kill',
  'CLIENT SETNAME': 'name',
  'CLIENT PAUSE': 'pause',
  'CLIENT UNPAUSE': 'pause',
}

const rows = allCommands()

/** An unknown command: sent on a dedicated connection, because it may change that connection's state. */
export const unknownCommand: ProxyCommand = {
  name: 'UNKNOWN',
  id: 0,
  row: undefined,
  way: 'pin',
  isShared: false,
  mayBlock: false,
  isWrite: true,
  isRead: false,
  keyIndex: 0,
  mark: 'unknown',
  subcommands: undefined,
}

/** The proxy's own command. */
const ownCommand: ProxyCommand = {
  ...unknownCommand,
  name: 'FIREBREAK',
  id: 1,
  way: 'own',
  isWrite: false,
  mark: undefined,
}

/** All commands, by id. */
export const proxyCommands: readonly ProxyCommand[] = [unknownCommand, ownCommand, ...rows.map(makeCommand)]

function makeCommand(row: CommandRow, index: number): ProxyCommand {
  const { name, flags } = row
  const way = ways[name] ?? (flags.has('blocking') && row.type !== 'stream' ? 'borrow' : 'shared')
  const mayBlock = flags.has('blocking')
  return {
    name,
    id: index + 2,
    row,
    way,
    isShared: way === 'shared' && !mayBlock,
    mayBlock,
    isWrite: row.access === 'write' || flags.has('scripting') || (row.access === 'none' && flags.has('admin')),
    isRead: row.access === 'read',
    keyIndex: row.hasSingleKey ? row.firstKey : 0,
    mark: marks[name],
    subcommands: undefined,
  }
}

function tableOf(): NameTable<ProxyCommand> {
  const bySubcommand = new Map<string, [string, ProxyCommand][]>()
  for (const command of proxyCommands) {
    const [name, subcommand] = command.name.split(' ')
    if (subcommand === undefined) continue
    const siblings = bySubcommand.get(name!) ?? []
    siblings.push([subcommand, command])
    bySubcommand.set(name!, siblings)
  }
  const tops = proxyCommands.filter(({ name }) => name !== 'UNKNOWN' && !name.includes(' '))
  return new NameTable(
    tops.map((command) => {
      const children = bySubcommand.get(command.name)
      if (children === undefined) return [command.name, command]
      const container = { ...command, subcommands: new NameTable(children) }
      return [command.name, container]
    }),
  )
}

const table = tableOf()

/** The command MULTI, for transactions that the proxy opens itself. */
export const multiCommand: ProxyCommand = table.ofText('MULTI')!

/** The command PING, for the proxy's own checks. */
export const pingCommand: ProxyCommand = table.ofText('PING')!

/** The command that the arguments name, in any case. An unknown subcommand counts as unknown. */
export function proxyCommandOf(args: CommandArgs): ProxyCommand {
  const command = args.find(0, table)
  if (command === undefined) return unknownCommand
  if (command.subcommands === undefined || args.length < 2) return command
  return args.find(1, command.subcommands) ?? unknownCommand
}
