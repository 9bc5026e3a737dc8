import { parseArgs } from 'node:util'
import type { Overview } from '@firebreak/core'
import type { Command, CommandIo } from '../command/command.ts'
import { HubApi, hubUrl } from '../hub-api/hub-api.ts'

/** A hub that does not answer by then has not confirmed. */
const confirmMs = 5000

function switchCommand(name: 'off' | 'on', whatFor: string, said: string): Command {
  return {
    flags: ['hub'],
    help: `${whatFor}.

Examples:
  firebreak ${name}
  firebreak ${name} --hub http://127.0.0.1:7070
  firebreak ${name} --hub http://hub-1:7070,http://hub-2:7070   tell each hub, and print who confirmed

Options:
  --hub URL[,URL…]   the hubs (env FIREBREAK_HUB; default: the running "firebreak up")
`,
    async run(args, io) {
      const { values } = parseArgs({ args: [...args], options: { hub: { type: 'string' } } })
      const urls = hubUrl(values.hub, io).split(',')
      const isOff = name === 'off'
      if (urls.length > 1) return tellEach(urls, isOff, said, io)
      const api = HubApi.of(urls[0], io)
      const { isStored } = await api.call<SwitchAnswer>('POST', '/v1/switch', { isOff })
      io.stdout.write(`${said} (hub ${api.url}).\n`)
      if (isStored === false) io.stdout.write(notStored)
      return 0
    },
  }
}

/** `isStored` is missing where the hub is of an earlier version. */
interface SwitchAnswer {
  readonly isStored?: boolean
}

const notStored = 'The store is away: only the sensors of this hub are told now, all others when it is back.\n'

/** Tells all hubs at once; 0 where every one has confirmed. */
async function tellEach(urls: readonly string[], isOff: boolean, said: string, io: CommandIo): Promise<number> {
  const confirmed = await Promise.all(
    urls.map(async (url) => {
      const api = HubApi.of(url.trim(), io)
      try {
        const { isStored } = await within(api.call<SwitchAnswer>('POST', '/v1/switch', { isOff }))
        const { sensors } = await within(api.call<Overview>('GET', '/v1/overview'))
        const where = isStored === false ? ', its store is away' : ''
        io.stdout.write(`confirmed      ${api.url}  (${sensors.connected} sensors${where})\n`)
        return true
      } catch (error) {
        io.stdout.write(`not confirmed  ${api.url}  ${(error as Error).message}\n`)
        return false
      }
    }),
  )
  const count = confirmed.filter(Boolean).length
  io.stdout.write(`${count} of ${urls.length} hubs confirmed. ${count > 0 ? `${said}.` : 'Nothing was switched.'}\n`)
  return count === urls.length ? 0 : 1
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
