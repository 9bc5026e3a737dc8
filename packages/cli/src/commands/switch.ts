import { parseArgs } from 'node:util'
import type { HostView } from '@firebreak/core'
import type { Command, CommandIo } from '../command/command.ts'
import { HubApi, HubCallError, hubUrls } from '../hub-api/hub-api.ts'

/** A hub or sensor that does not answer by then counts as unconfirmed. */
const confirmMs = 5000

function switchCommand(name: 'off' | 'on', whatFor: string, said: string): Command {
  return {
    flags: ['hub'],
    help: `${whatFor}.

Examples:
  firebreak ${name}
  firebreak ${name} --hub http://127.0.0.1:7070
  firebreak ${name} --hub http://hub-1:7070,http://hub-2:7070   switch each hub, and print which hubs and sensors confirmed

Options:
  --hub URL[,URL…]   the hubs (env FIREBREAK_HUB; default: the running "firebreak up")
`,
    async run(args, io) {
      const { values } = parseArgs({ args: [...args], options: { hub: { type: 'string' } } })
      const urls = hubUrls(values.hub, io)
      const isOff = name === 'off'
      if (urls.length > 1) return tellEach(urls, isOff, said, io)
      const api = HubApi.of(urls[0], io)
      const { isStored } = await api.call<SwitchAnswer>('POST', '/v1/switch', { isOff }).catch((error: unknown) => {
        throw isUnanswered(error)
          ? new HubCallError(`${whyNot(error)}: nothing was switched.\n${withoutHub(isOff)}`, { cause: error })
          : error
      })
      io.stdout.write(`${said} (hub ${api.url}).\n`)
      if (isStored === false) io.stdout.write(notStored)
      return 0
    },
  }
}

/** True if no hub answered at all; what a hub has refused is told as it says it. */
function isUnanswered(error: unknown): error is HubCallError {
  return error instanceof HubCallError && error.isUnanswered
}

/** Which hub was tried, without the advice to start one. */
function whyNot({ message }: HubCallError): string {
  return message.split('; start one')[0]!
}

/** What works while no hub answers. */
function withoutHub(isOff: boolean): string {
  const others =
    'If there are other hubs, name all of them: --hub URL,URL or FIREBREAK_HUB; one that answers is enough.'
  if (!isOff) return `${others}\nOtherwise run this again when a hub is back.`
  return `${others}
Without any hub: set FIREBREAK=off in the environment of an application or a proxy and restart it; it then passes
everything through. The others stop handling keys when their tables expire, after a minute without a hub. Run this again
when a hub is back: every process follows within a second.`
}

/** `isStored` is missing from hubs of earlier versions. */
interface SwitchAnswer {
  readonly isStored?: boolean
}

const notStored =
  'The store is unreachable: only the sensors of this hub have been notified; all others will be when it recovers.\n'

/** Switches all hubs at once; returns 0 if every hub and all of their sensors have confirmed. */
async function tellEach(urls: readonly string[], isOff: boolean, said: string, io: CommandIo): Promise<number> {
  const answers = await Promise.all(
    urls.map(async (url) => {
      const api = HubApi.of(url, io)
      try {
        const { isStored } = await within(api.call<SwitchAnswer>('POST', '/v1/switch', { isOff }))
        return { api, isStored, sensors: await followed(api, isOff) }
      } catch (error) {
        return { api, failure: whyNot(error as HubCallError) }
      }
    }),
  )
  for (const { api, isStored, sensors, failure } of answers) {
    if (sensors === undefined) {
      io.stdout.write(`not confirmed  ${api.url}  ${failure}\n`)
      continue
    }
    const where = isStored === false ? ', its store is unreachable' : ''
    const count = sensors.filter((sensor) => sensor.isOff === isOff).length
    io.stdout.write(`confirmed      ${api.url}  (${count} of ${sensors.length} sensors${where})\n`)
    for (const sensor of sensors) {
      const state = sensor.isOff === isOff ? 'confirmed    ' : 'not confirmed'
      io.stdout.write(`  ${state}  ${sensor.serviceId} ${sensor.hostId} ${sensor.instanceId}\n`)
    }
  }
  const confirmed = answers.filter(({ sensors }) => sensors !== undefined)
  const sensors = confirmed.flatMap((answer) => answer.sensors ?? [])
  const late = sensors.filter((sensor) => sensor.isOff !== isOff).length
  const isWhole = confirmed.length === urls.length && late === 0
  const again = isOff ? 'Not everything is off: run this again.' : 'Not everything is back on: run this again.'
  if (confirmed.length === 0) io.stdout.write(`${withoutHub(isOff)}\n`)
  const missing = `Every sensor of these has followed; a hub that did not answer follows when it is back and shares their store, otherwise run this again then.`
  const partly = late === 0 ? missing : again
  const outcome = confirmed.length === 0 ? 'Nothing was switched.' : isWhole ? `${said}.` : partly
  io.stdout.write(
    `${confirmed.length} of ${urls.length} hubs confirmed, ${sensors.length - late} of ${sensors.length} sensors. ${outcome}\n`,
  )
  return isWhole ? 0 : 1
}

/** A hub's sensors, once all of them have followed or when the time is up. */
async function followed(api: HubApi, isOff: boolean): Promise<readonly HostView[]> {
  const deadline = performance.now() + confirmMs
  for (;;) {
    const { hosts } = await within(api.call<{ hosts: HostView[] }>('GET', '/v1/hosts'))
    // Those without a connection have moved to another hub, have ended, or report over HTTP and do not handle keys.
    const sensors = hosts.filter(({ isConnected }) => isConnected !== false)
    if (sensors.every((sensor) => sensor.isOff === isOff) || performance.now() > deadline) return sensors
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

function within<Result>(answer: Promise<Result>): Promise<Result> {
  const late = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error(`no answer within ${confirmMs / 1000} s`)), confirmMs).unref()
  })
  return Promise.race([answer, late])
}

export const off: Command = switchCommand(
  'off',
  'The kill switch: turn every shield into a plain pass-through, fleet-wide within a second',
  'Off: every shield passes through. Switch back with: firebreak on',
)

export const on: Command = switchCommand('on', 'Protect again after "firebreak off"', 'On: hot keys are handled again')
