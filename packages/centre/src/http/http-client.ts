import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { Timers } from '@firebreak/core'
import type { ClientTls } from '../tls-files.ts'

export interface HttpClientOptions {
  readonly timers: Timers
  /** For addresses with `https:`. @default {} */
  readonly tls?: ClientTls | undefined
  /** False: connections do not keep the process alive. @default true */
  readonly keepsAlive?: boolean | undefined
}

export interface HttpQuestion {
  readonly method: 'GET' | 'POST' | 'PUT'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Time limit for the whole exchange, including the body. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
}

/** No response that we request here is larger. */
const maxAnswerBytes = 16 << 20

/** Small HTTP exchanges over kept-alive connections, each with a deadline and a size limit. */
export class HttpClient {
  readonly #timers: Timers
  readonly #keepsAlive: boolean
  readonly #http = new HttpAgent({ keepAlive: true })
  readonly #https: HttpsAgent

  constructor({ timers, tls, keepsAlive = true }: HttpClientOptions) {
    this.#timers = timers
    this.#keepsAlive = keepsAlive
    this.#https = new HttpsAgent({ keepAlive: true, ...tls })
  }

  ask(url: string, question: HttpQuestion): Promise<HttpAnswer> {
    const parts: Buffer[] = []
    return this.#exchange(url, question, (chunk) => parts.push(chunk)).then(({ statusCode = 0, headers }) => ({
      status: statusCode,
      headers,
      text: Buffer.concat(parts).toString(),
    }))
  }

  /** A streaming response: reports each line as it arrives. Resolves when it ends or its time is up. */
  async lines(url: string, question: HttpQuestion, onLine: (line: string) => void): Promise<{ status: number }> {
    let rest = ''
    const decoder = new TextDecoder()
    const { statusCode = 0 } = await this.#exchange(
      url,
      question,
      (chunk) => {
        const found = (rest + decoder.decode(chunk, { stream: true })).split('\n')
        rest = found.pop()!
        for (const line of found) if (line !== '') onLine(line)
        return rest.length
      },
      true,
    )
    if (rest !== '') onLine(rest)
    return { status: statusCode }
  }

  close(): void {
    this.#http.destroy()
    this.#https.destroy()
  }

  #exchange(
    url: string,
    { method, headers = {}, body, timeoutMs, signal }: HttpQuestion,
    /** Gives how many bytes are held. */
    onChunk: (chunk: Buffer) => number,
    mayRunOut = false,
  ): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const isSecure = url.startsWith('https:')
      const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
      const options = { method, headers: { ...headers, ...length }, agent: isSecure ? this.#https : this.#http }
      const request: ClientRequest = (isSecure ? httpsRequest : httpRequest)(url, options)
      let answer: IncomingMessage | undefined
      const stop = () => request.destroy(new Error('the request was cancelled'))
      const timer = this.#timers.setTimeout(() => {
        if (mayRunOut && answer !== undefined) end(() => resolve(answer!))
        request.destroy(new Error(`no answer within ${timeoutMs} ms`))
      }, timeoutMs)
      const end = (settle: () => void) => {
        timer.cancel()
        signal?.removeEventListener('abort', stop)
        settle()
      }
      signal?.addEventListener('abort', stop)
      if (signal?.aborted) stop()
      if (!this.#keepsAlive) request.on('socket', (socket) => socket.unref())
      request.on('error', (error) => end(() => reject(error)))
      request.on('response', (response) => {
        answer = response
        let bytes = 0
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length
          try {
            const held = onChunk(chunk)
            if ((mayRunOut ? held : bytes) > maxAnswerBytes) request.destroy(new Error('the answer is too large'))
          } catch (error) {
            request.destroy(error as Error)
          }
        })
        response.on('error', (error) => end(() => reject(error)))
        response.on('end', () => end(() => resolve(response)))
        response.on('close', () => end(() => reject(new Error('the connection was closed'))))
      })
      request.end(body)
    })
  }
}
