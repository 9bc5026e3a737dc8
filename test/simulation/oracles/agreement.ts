import type { Rule } from '@firebreak/core/rules'
import type { HubCore } from '@firebreak/hub'
import type { Fleet } from '../fleet/fleet.ts'
import { threshold } from '../fleet/keys.ts'
import { Person } from '../fleet/person.ts'
import { extraEvent } from './history.ts'
import { BrokenLaw } from './laws.ts'

/** Hubs and sensors agree by then after the last fault … */
export const agreeMs = 5000
/** … except for what is in flight at that moment. */
const fluxMs = 600

/** Waits for the fleet to agree, while the load continues. */
export async function checkAgreement(fleet: Fleet, person: Person): Promise<void> {
  const { world } = fleet
  await world.run(agreeMs / 2)
  // Losses until then were lost with a connection or a hub.
  fleet.noteMissing()
  await world.run(agreeMs / 2)
  const looks = { agree: disagreement, healed: illWatcher } as const
  for (const [law, look] of Object.entries(looks) as [keyof typeof looks, (fleet: Fleet) => string | undefined][]) {
    let differs: string | undefined
    for (let waited = 0; waited <= fluxMs; waited += 25) {
      differs = look(fleet)
      if (differs === undefined) break
      await world.run(25)
    }
    if (differs !== undefined) throw new BrokenLaw(law, `${agreeMs} ms after the last fault ${differs}`)
  }
  checkFound(fleet)
  checkChanges(fleet, person)
}

/** Popular keys are hot, at every hub. */
function checkFound(fleet: Fleet): void {
  for (const key of fleet.focus()) {
    // Half a second ago, so that reports and posts have arrived; twice the threshold, because a report may be lost.
    const heat = fleet.heatOf(key, 500)
    if (key.startsWith('cold:') || heat < 2 * threshold) continue
    for (const { name, core } of fleet.hubs) {
      if (core!.delivery.isOff || isRuleLost(fleet, core!, key)) continue
      if ([...core!.delivery.view('shop').entries()].some((entry) => entry.key === key)) continue
      throw new BrokenLaw('found', `${key} had ${heat} accesses in a second, and is not hot at ${name}`)
    }
  }
}

/** Hubs that died with what they knew, and a store that lost it: nobody is left who knows the key's rule. */
function isRuleLost({ hasStoreLost, hasHubDied }: Fleet, core: HubCore, key: string): boolean {
  const id = key.slice(0, key.indexOf(':'))
  return hasStoreLost && hasHubDied && !core.rules().rules.some((rule) => rule.id === id)
}

/** The first difference between two that should agree. */
function disagreement({ hubs, lives, proxy }: Fleet): string | undefined {
  const cores = hubs.map(({ core }) => core)
  const [first, second] = cores
  if (first === undefined || second === undefined) return 'a hub has not started'
  for (const core of [first, second]) {
    if (core.hubCount !== 2) return `${core.options.hubId} knows of ${core.hubCount} hubs`
    if (core.keys.isAlone) return `${core.options.hubId} is cut off from its store`
  }
  for (const [what, of] of Object.entries(common)) {
    const [a, b] = [of(first), of(second)]
    if (a !== b) return `the hubs differ in ${what}: ${a} and ${b}`
  }
  for (const { process, shield } of lives) {
    if (!shield.isConnected) return `${process.name} has no hub`
    const { epoch, version } = shield.tableVersion
    const core = [first, second].find(({ delivery }) => delivery.epoch === epoch)
    if (core === undefined) return `${process.name} has a table of no hub that lives`
    const expected = core.delivery.view('shop').version
    if (version !== expected)
      return `${process.name} has version ${version} of ${core.options.hubId}, which is at ${expected}`
    if (shield.isOff !== core.delivery.isOff) return `${process.name} and its hub differ in the switch`
  }
  const info = proxy.core.infoSection()
  if (!info.includes('firebreak_hub:connected')) return 'the proxy has no hub'
  const isOn = info.includes('firebreak_shield:on')
  if (isOn === first.delivery.isOff) return `the proxy is ${isOn ? 'on' : 'off'}, and the hubs are not`
  return undefined
}

/** A process that receives no changes although nothing is in its way: hot keys are not served from its memory. */
function illWatcher({ lives, guard }: Fleet): string | undefined {
  for (const { process, cluster } of lives) {
    const ill = cluster.watcherStatuses().find(({ kind, state }) => kind !== guard || state !== 'live')
    if (ill !== undefined) return `a watcher of ${process.name} is ${ill.state}, by ${ill.kind}: ${ill.detail}`
  }
  return undefined
}

/** What hubs have in common, as text. */
const common: Record<string, (core: HubCore) => string> = {
  switch: ({ delivery }) => String(delivery.isOff),
  rules: (core) => JSON.stringify(core.rules().rules),
  'the version of rules': (core) => String(core.rules().version),
  'hot keys': ({ delivery }) =>
    [...delivery.view('shop').entries()]
      .map(({ key, strategy }) => `${key} ${strategy.strategy}`)
      .sort()
      .join(', '),
}

/** The answer given to people is in force, and recorded. */
function checkChanges({ hubs, store, recorded, hasStoreLost, hasHubDied }: Fleet, person: Person): void {
  // Hubs that died with what they knew, and a store that lost it: nobody is left who knows.
  if (hasStoreLost && hasHubDied) return
  const core = hubs[0]!.core!
  const rule = core.rules().rules.find(({ id }) => id === 'person')
  const inForce = rule === undefined ? 0 : rule.levels[0]!.enter
  const expected = Person.possible(person.rule)
  const isMade = person.rule.some(({ outcome }) => outcome === 'made')
  if (!expected.includes(inForce) && (isMade || rule !== undefined)) {
    throw new BrokenLaw('refused', `rule person has ${inForce}, and ${expected.join(' or ')} was asked for`)
  }
  const isOff = Person.possible(person.switch)
  if (!isOff.includes(core.delivery.isOff)) {
    throw new BrokenLaw('refused', `the switch is ${core.delivery.isOff ? 'off' : 'on'}, and nobody asked for that`)
  }
  const audit = listOf(store, 'audit')
  const names = audit.map(({ at, what }) => `${String(at)} ${String(what)}`)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new BrokenLaw('audited', `the audit has twice: ${twice}`)
  const made = audit.some(({ after }) => (after as Rule | null)?.levels?.[0]?.enter === inForce)
  // A store that went back gets the rule again from the hubs, and not what was written of it.
  if (rule !== undefined && !made && !hasStoreLost)
    throw new BrokenLaw('audited', `rule person has ${inForce}, and no audit entry`)
  // Alarms are each hub's own: two hubs that start while the store is away say the same at the same moment.
  const events = listOf(store, 'history').flatMap((event) => (event['kind'] === 'alarm' ? [] : [JSON.stringify(event)]))
  const extra = extraEvent(events, recorded)
  if (extra !== undefined) throw new BrokenLaw('history', `the history has too often: ${extra}`)
}

/** A list that the hubs keep in their store. */
function listOf(store: Fleet['store'], name: string): Record<string, unknown>[] {
  const texts = store.ask('LRANGE', `{firebreak:hub}:${name}`, '0', '-1') as string[]
  return texts.map((text) => JSON.parse(text) as Record<string, unknown>)
}
