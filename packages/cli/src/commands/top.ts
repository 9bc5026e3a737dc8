import { parseArgs } from 'node:util'
import { type KeyDetail, type Overview, plainLines } from '@firebreak/core'
import { type Command, type CommandIo, UsageError } from '../command/command.ts'
import { HubApi } from '../hub-api/hub-api.ts'
import { type HubShare, hubShareOf } from '../hub-api/other-hubs.ts'
import { helpLine, type LostHub, renderTop } from '../top/render-top.ts'
import {
  chosenRow,
  initialTop,
  pressKey,
  type TopEffect,
  type TopSort,
  type TopState,
  topRows,
  topSorts,
} from '../top/top-state.ts'

/** How long an action taken from the screen lasts. */
const actionMs = 600_000

export const top: Command = {
  flags: ['hub', 'once', 'json', 'interval', 'sort', 'filter'],
  drawsScreen: true,
  help: `The hottest keys, live in the terminal.

Examples:
  firebreak top
  firebreak top --sort bytes --filter product
  firebreak top --once --json

Options:
  --hub URL      the hub; of several separated by commas, the first that answers (env FIREBREAK_HUB; default: the running "firebreak up")
  --interval MS  refresh interval (default 1000)
  --sort NAME    rate, share, writes, bytes, minute or name (default rate)
  --filter TEXT  only keys, clusters and rules that contain it
  --once         print once and exit
  --json         the hub's overview as JSON, one object per line
In a terminal: j and k choose a key, enter shows its detail, c caches, d copies, l limits and i ignores it for ten minutes,
u undoes that, s sorts, r reverses, / filters, p pauses, q quits. While the hub does not answer, the last figures stay, with
their time.
`,
  async run(args, io) {
    const { values } = parseArgs({
      args: [...args],
      options: {
        hub: { type: 'string' },
        interval: { type: 'string', default: '1000' },
        sort: { type: 'string', default: 'rate' },
        filter: { type: 'string', default: '' },
        once: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
      },
    })
    const intervalMs = Number(values.interval)
    if (!(intervalMs >= 50))
      throw new UsageError(`--interval is "${values.interval}"; it must be at least 50 milliseconds`)
    if (!topSorts.includes(values.sort as TopSort))
      throw new UsageError(`--sort is "${values.sort}"; it must be one of ${topSorts.join(', ')}`)
    const api = HubApi.of(values.hub, io)
    const state: TopState = { ...initialTop, sort: values.sort as TopSort, filter: values.filter }
    const isPressed = io.stdin.isTTY === true && io.stdout.isTTY === true && !values.json && !values.once
    if (isPressed) return new TopScreen(api, io, state).run(intervalMs)
    for (;;) {
      const overview = await api.call<Overview>('GET', '/v1/overview')
      io.stdout.write(
        values.json
          ? plainLines(`${JSON.stringify(overview)}\n`)
          : screenOf(overview, await hubShareOf(api), io, values.once, state),
      )
      if (values.once) return 0
      await pause(intervalMs, io.signal)
      if (io.signal.aborted) return 0
    }
  },
}

function screenOf(
  overview: Overview,
  share: HubShare | undefined,
  io: CommandIo,
  isOnce: boolean,
  state: TopState,
): string {
  const screen = renderTop(overview, terminalOf(io), state, undefined, { share })
  return io.stdout.isTTY && !isOnce ? `\u001b[H\u001b[2J${screen}` : screen
}

function terminalOf({ stdout }: CommandIo) {
  // Not a terminal, so no width limit: in a file or ticket the whole verdict is wanted.
  const columns = stdout.columns ?? (stdout.isTTY ? 100 : Number.POSITIVE_INFINITY)
  return { columns, rows: stdout.rows ?? 40, isColored: stdout.isTTY === true }
}

/** The alternate screen without a cursor, so that the terminal's previous content is restored afterwards. */
const enterScreen = '\u001b[?1049h\u001b[?25l\u001b[2J'
const leaveScreen = '\u001b[?25h\u001b[?1049l'

/** `top` on an interactive terminal. */
class TopScreen {
  readonly #api: HubApi
  readonly #io: CommandIo
  readonly #end = new AbortController()
  #state: TopState
  #overview: Overview | undefined
  #detail: KeyDetail | undefined
  #share: HubShare | undefined
  #heardAt = new Date(0)
  #lost: LostHub | undefined
  /** The current action: the next key press must not overtake it at the hub. */
  #acting: Promise<void> = Promise.resolve()
  #wake = () => {}

  constructor(api: HubApi, io: CommandIo, state: TopState) {
    this.#api = api
    this.#io = io
    this.#state = state
  }

  async run(intervalMs: number): Promise<number> {
    const { stdin, stdout, signal } = this.#io
    const onInput = (bytes: Buffer | string) => {
      for (const key of keysIn(String(bytes))) this.#press(key)
    }
    const onAbort = () => {
      this.#end.abort()
      this.#wake()
    }
    // If there is no hub at the start, report that instead of an empty screen.
    await this.#look()
    const onResize = () => this.#draw()
    signal.addEventListener('abort', onAbort)
    stdin.setRawMode(true)
    stdin.on('data', onInput).resume()
    stdout.on('resize', onResize)
    stdout.write(enterScreen)
    try {
      this.#draw()
      while (!this.#end.signal.aborted) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, intervalMs)
          this.#wake = () => {
            clearTimeout(timer)
            resolve()
          }
        })
        if (this.#end.signal.aborted) break
        await this.#look().catch((error: Error) => {
          this.#lost = { heardAt: this.#heardAt, message: error.message }
        })
        this.#draw()
      }
      return 0
    } finally {
      signal.removeEventListener('abort', onAbort)
      stdin.off('data', onInput).pause()
      stdin.setRawMode(false)
      stdout.off('resize', onResize)
      stdout.write(leaveScreen)
    }
  }

  async #look(): Promise<void> {
    if (!this.#state.isPaused || this.#overview === undefined) {
      this.#overview = await this.#api.call<Overview>('GET', '/v1/overview')
      this.#share = await hubShareOf(this.#api)
      this.#heardAt = new Date()
      this.#lost = undefined
      await this.#lookAtChosen()
    }
  }

  async #lookAtChosen(): Promise<void> {
    const row = this.#state.isDetail ? chosenRow(topRows(this.#overview!, this.#state), this.#state) : undefined
    this.#detail =
      row &&
      (await this.#api.call<KeyDetail>('GET', keyPath(row.key.redisClusterId, row.key.key)).catch(() => undefined))
  }

  #draw(): void {
    if (this.#overview === undefined || this.#end.signal.aborted) return
    const terminal = terminalOf(this.#io)
    const inner = { ...terminal, rows: terminal.rows - 1 }
    const screen = renderTop(this.#overview, inner, this.#state, this.#detail, {
      lost: this.#lost,
      share: this.#share,
    })
    // Drawn line by line over the old content: clearing the screen first would flicker.
    this.#io.stdout.write(`\u001b[H${`${screen}${helpLine(terminal)}`.replaceAll('\n', '\u001b[K\n')}\u001b[K\u001b[J`)
  }

  #press(key: string): void {
    if (this.#overview === undefined && key !== '\u0003' && key !== 'q') return
    const rows = this.#overview === undefined ? [] : topRows(this.#overview, this.#state)
    const wasDetail = this.#state.isDetail
    const [state, effect] = pressKey(this.#state, key, rows)
    this.#state = state
    if (effect.kind === 'end') {
      this.#end.abort()
      this.#wake()
    } else if (effect.kind === 'act') this.#acting = this.#acting.then(() => this.#act(effect))
    else if (state.isDetail && !wasDetail) void this.#lookAtChosen().then(() => this.#draw())
    this.#draw()
  }

  async #act({ action, key, limit }: Extract<TopEffect, { kind: 'act' }>): Promise<void> {
    const path = `${keyPath(key.redisClusterId, key.key)}/action`
    try {
      if (action === 'undo') await this.#api.call('DELETE', path)
      else await this.#api.call('PUT', path, { action, forMs: actionMs, ...(limit !== undefined && { limit }) })
      this.#state = { ...this.#state, note: action === 'undo' ? 'undone' : `${action}: in force for ten minutes` }
    } catch (error) {
      this.#state = { ...this.#state, note: (error as Error).message }
    }
    this.#wake()
    this.#draw()
  }
}

/** A key's URL path: its text is percent-encoded once more. */
function keyPath(redisClusterId: string, keyText: string): string {
  return `/v1/keys/${encodeURIComponent(redisClusterId)}/${encodeURIComponent(keyText)}`
}

/** Splits input into keys: an arrow is several bytes, pasted text is several keys. */
function keysIn(text: string): string[] {
  return text.match(/\u001b\[[A-D]|[\s\S]/g) ?? []
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
