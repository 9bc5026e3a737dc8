import { parseArgs } from 'node:util'
import type { Overview } from '@firebreak/core'
import { type Command, type CommandIo, UsageError } from '../command/command.ts'
import { HubApi } from '../hub-api/hub-api.ts'
import { renderTop } from '../top/render-top.ts'

export const top: Command = {
  flags: ['hub', 'once', 'json', 'interval'],
  help: `The hottest keys, live in the terminal.

Examples:
  firebreak top
  firebreak top --once --json
  firebreak top --interval 500

Options:
  --hub URL      the hub (env FIREBREAK_HUB; default: the running "firebreak up")
  --interval MS  how often to look (default 1000)
  --once         print once and end
  --json         the hub's overview as JSON, one object a line
Ctrl-C ends it.
`,
  async run(args, io) {
    const { values } = parseArgs({
      args: [...args],
      options: {
        hub: { type: 'string' },
        interval: { type: 'string', default: '1000' },
        once: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
      },
    })
    const intervalMs = Number(values.interval)
    if (!(intervalMs >= 50))
      throw new UsageError(`--interval is "${values.interval}"; it must be 50 milliseconds or more`)
    const api = HubApi.of(values.hub, io)
    for (;;) {
      const overview = await api.call<Overview>('GET', '/v1/overview')
      print(overview, io, values.json, values.once)
      if (values.once) return 0
      await pause(intervalMs, io.signal)
      if (io.signal.aborted) return 0
    }
  },
}

function print(overview: Overview, io: CommandIo, isJson: boolean, isOnce: boolean): void {
  if (isJson) {
    io.stdout.write(`${JSON.stringify(overview)}\n`)
    return
  }
  const screen = renderTop(overview, {
    columns: io.stdout.columns ?? 100,
    rows: io.stdout.rows ?? 40,
    isColored: io.stdout.isTTY === true,
  })
  io.stdout.write(io.stdout.isTTY && !isOnce ? `\u001b[H\u001b[2J${screen}` : screen)
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
  })
}
