import { type IncomingHttpHeaders, request } from 'node:http'
import type { AlarmView, AuditEntry, HistoryEvent, HostView, Overview } from '@firebreak/core'
import { startSource } from '@firebreak/testkit'

/** What the hub's calls answer, as far as these tests look at it; each has the fields of its own call. */
interface AnswerBody extends Overview {
  readonly code: string
  readonly csrf: string
  readonly hosts: readonly HostView[]
  readonly alarms: readonly AlarmView[]
  readonly entries: readonly AuditEntry[]
  readonly events: readonly HistoryEvent[]
}

export interface Answer {
  readonly status: number
  readonly body: AnswerBody
  readonly headers: IncomingHttpHeaders
}

/** A request with any header, without what a well-behaved client would add or leave out. */
export function call(
  port: number,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: unknown,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const isText = typeof body === 'string'
    const type = body === undefined ? {} : { 'content-type': isText ? 'text/plain' : 'application/json' }
    const sent = request({ port, path, method, headers: { ...type, ...headers } }, (response) => {
      let text = ''
      response.on('data', (chunk) => (text += chunk))
      response.on('end', () => {
        const isJson = /json/.test(response.headers['content-type'] ?? '')
        resolve({ status: response.statusCode!, body: isJson ? JSON.parse(text) : text, headers: response.headers })
      })
    })
    sent.on('error', reject).end(body === undefined ? undefined : isText ? body : JSON.stringify(body))
  })
}

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

const main = new URL('../../packages/cli/src/main.ts', import.meta.url)

/** Runs a `firebreak` command to its end; its output, stderr included, and the exit code. */
export async function firebreak(
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = startSource(main, args, { env: { ...process.env, ...env } })
  const code = await child.exited
  return { code, output: child.output() }
}

/** The token that a `token` command printed. */
export function tokenIn({ output }: { readonly output: string }): string {
  const found = output.match(/fbt_[\w-]{43}/)?.[0]
  if (found === undefined) throw new Error(`no token in: ${output}`)
  return found
}
