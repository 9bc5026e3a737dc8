import { execFileSync } from 'node:child_process'
import type { Chance, FaultProxy, GuardedChild } from '@firebreak/testkit'
import type { DataServer, Restartable, Stage } from './stage.ts'

/** What a fault may do to the calls of an application. */
export type Reach = 'sdk' | 'proxy' | 'both' | 'none'

/** A fault that lasts a while. */
export interface ChaosFault {
  readonly name: string
  /** Whose calls may fail or wait, as they would with a bare client. */
  readonly reach: Reach
  /** True if tracking may be refused, so that values live for `fallbackTtlMs`. */
  readonly refusesTracking?: boolean
  begin(): Promise<void>
  end(): Promise<void>
}

/** All kinds of faults on a stage. Those of one list affect the same parts; only one of each list may happen at a time. */
export interface ChaosFaults {
  /** On the path of a call. */
  readonly data: readonly ChaosFault[]
  /** On hubs and their store. */
  readonly control: readonly ChaosFault[]
}

/** The faults of a stage; `chance` says how strong each is. */
export function faultsOf(stage: Stage, chance: Chance): ChaosFaults {
  const { data, store, dataLink, proxyLink, storeLinks, hubs, proxy, hubClock } = stage
  const onData = [...links('the application’s way to Redis', 'sdk', dataLink, chance)]
  const onProxy = [...links('the proxy’s way to Redis', 'proxy', proxyLink, chance)]
  const onStore = storeLinks.flatMap((link, hub) => [...links(`hub ${hub}’s way to its store`, 'none', link, chance)])
  const onHubs = hubs.flatMap((hub, index) => [...program(`hub ${index}`, 'none', hub), fullDisk(`hub ${index}`, hub)])
  const failover: ChaosFault = {
    name: 'a failover of Redis',
    reach: 'both',
    async begin() {
      await data.failOver()
      for (const link of [dataLink, proxyLink]) link.retarget(data.server.port)
    },
    async end() {},
  }
  const clockStep: ChaosFault = {
    name: 'hub 0’s clock steps',
    reach: 'none',
    begin: async () => hubClock.set(chance.pick([-60_000, -5000, 5000, 60_000])),
    end: async () => hubClock.set(0),
  }
  return {
    data: [
      ...onData,
      ...onProxy,
      ...program('the proxy', 'proxy', proxy),
      fullDisk('the proxy', proxy),
      ...server('Redis', 'both', data),
      refused('Redis refuses tracking', 'both', data, ['-client|tracking'], true),
      failover,
    ],
    control: [
      ...onStore,
      ...onHubs,
      ...server('the store', 'none', store),
      refused('the store refuses scripts', 'none', store, ['-evalsha', '-eval'], false),
      clockStep,
    ],
  }
}

function* links(name: string, reach: Reach, link: FaultProxy, chance: Chance): Generator<ChaosFault> {
  const { faults } = link
  const lasting = (what: string, begin: () => void, end: () => void): ChaosFault => ({
    name: `${name} ${what}`,
    reach,
    begin: async () => begin(),
    end: async () => end(),
  })
  yield lasting(
    'is a black hole',
    () => {
      faults.isBlackHole = true
    },
    () => {
      faults.isBlackHole = false
      // Swallowed requests are never answered, so the connections are useless now.
      link.cut()
    },
  )
  yield lasting(
    'is slow',
    () => {
      faults.serverDelayMs = chance.between(20, 250)
    },
    () => {
      faults.serverDelayMs = 0
    },
  )
  yield lasting(
    'is slow for tracking alone',
    () => {
      faults.onlyTracking = true
      faults.serverDelayMs = chance.between(100, 600)
    },
    () => {
      faults.onlyTracking = false
      faults.serverDelayMs = 0
    },
  )
  yield lasting(
    'is cut',
    () => link.cut(),
    () => {},
  )
  yield lasting(
    'is closed',
    () => {
      faults.refusesConnections = true
      link.cut()
    },
    () => {
      faults.refusesConnections = false
    },
  )
}

function program(name: string, reach: Reach, target: Restartable): ChaosFault[] {
  return [
    { name: `${name} is killed`, reach, begin: () => target.kill(), end: () => target.start() },
    stopped(name, reach, () => target.child),
  ]
}

function stopped(name: string, reach: Reach, child: () => GuardedChild): ChaosFault {
  return {
    name: `${name} is stopped`,
    reach,
    begin: async () => child().signal('SIGSTOP'),
    end: async () => child().signal('SIGCONT'),
  }
}

function server(name: string, reach: Reach, target: DataServer): ChaosFault[] {
  const maxMemory = (bytes: string) => target.server.cli('CONFIG', 'SET', 'maxmemory', bytes)
  return [
    { name: `${name} is killed`, reach, begin: () => target.kill(), end: () => target.restart() },
    stopped(name, reach, () => target.server.child),
    {
      name: `${name} has no memory left`,
      reach,
      begin: async () => void (await maxMemory('1')),
      end: async () => void (await maxMemory('0')),
    },
  ]
}

function refused(
  name: string,
  reach: Reach,
  target: DataServer,
  rights: readonly string[],
  refusesTracking: boolean,
): ChaosFault {
  const kick = () => target.server.cli('CLIENT', 'KILL', 'TYPE', 'normal')
  return {
    name,
    reach,
    refusesTracking,
    async begin() {
      await target.server.cli('ACL', 'SETUSER', 'default', ...rights)
      await kick()
    },
    async end() {
      await target.server.cli('ACL', 'SETUSER', 'default', '+@all')
      await kick()
    },
  }
}

function fullDisk(name: string, target: Restartable): ChaosFault {
  const bound = (bytes: number | 'unlimited') =>
    execFileSync('prlimit', ['--pid', String(target.child.pid), `--fsize=${bytes}:`])
  return {
    name: `the disk of ${name} is full`,
    reach: 'none',
    begin: async () => void bound(1),
    end: async () => void bound('unlimited'),
  }
}
