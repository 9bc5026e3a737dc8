import { Agent, request } from 'node:http'
import { formatTextReport } from '@firebreak/core'
import { type Hub, limitsRoutes, startHub } from '@firebreak/hub'
import { RuleService } from '@firebreak/limits/policy'
import { type FuzzTarget, LawBroken } from '../target.ts'
import { sampleReport } from './wire.ts'

let hub: Hub | undefined
const agent = new Agent({ keepAlive: true, maxSockets: 1 })

interface Answer {
  readonly status: number
  readonly body: string
}

function call(method: string, path: string, contentType: string, body: Buffer): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': contentType, 'content-length': body.length }
    const sent = request({ agent, host: hub!.host, port: hub!.port, method, path, headers }, (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk))
      answer.on('end', () => resolve({ status: answer.statusCode!, body: Buffer.concat(chunks).toString('utf8') }))
    })
    sent.on('error', (error) => {
      // The hub closes a connection after some refusals, while the agent already sends the next request on it.
      if (sent.reusedSocket) call(method, path, contentType, body).then(resolve, reject)
      else reject(error)
    })
    sent.end(body)
  })
}

const seed = (line: string, body: unknown = '') =>
  Buffer.from(`${line}\n${typeof body === 'string' ? body : JSON.stringify(body)}`)
const rule = { prefix: 'product_', threshold: 1000, windowMs: 1000, strategy: 'LocalCache' }

/** Requests to a real hub: `METHOD /path content/type` in the first line, then the body. */
export const hubHttpTarget: FuzzTarget = {
  name: 'hub-http',
  batch: 32,
  jsonAt: (input) => {
    const at = input.indexOf(10) + 1
    return input[at] === 0x7b ? at : -1
  },
  words: [
    '%00',
    '%2F',
    '..',
    '?limit=',
    '&',
    '=',
    '{"',
    '"}',
    'null',
    '[]',
    '# ',
    '__proto__',
    '[rules]',
    'PUT ',
    'DELETE ',
  ],
  seeds: () => [
    seed('PUT /v1/rules/a application/json', rule),
    seed('POST /v1/rules/a/dry-run application/json', { ...rule, regex: 'a{3}' }),
    seed('DELETE /v1/rules/a text/plain'),
    seed('POST /v1/switch application/json', { isOff: false }),
    seed('POST /v1/reports text/plain', formatTextReport(sampleReport(Date.now()), 1)),
    seed('POST /v1/reports text/plain;v=2', formatTextReport(sampleReport(Date.now()), 2)),
    seed('POST /v1/prewarm application/json', { redisClusterId: 'main', keys: ['a', 'b{1-3}'], holdMs: 1000 }),
    seed('POST /v1/tokens application/json', { name: 'x', role: 'viewer' }),
    seed('POST /v1/barred application/json', { serviceId: 's', hostId: 'h', instanceId: 'i' }),
    seed('POST /v1/sign-in application/json', { name: 'x', token: 'y' }),
    seed('GET /v1/keys?limit=5&state=hot text/plain'),
    seed('GET /v1/keys/main/a%2520b text/plain'),
    seed('GET /v1/history?since=0&limit=5 text/plain'),
    seed('POST /v1/limits/browse application/json', { user: '1' }),
    seed('POST /v1/limits/update application/x-www-form-urlencoded', 'user=1&act=2'),
    seed(
      'POST /v1/limits/policy text/plain',
      '[rules]\nrule : [count] [user=+] [time=60; count=10] [result=2; return=1]\n',
    ),
    seed(
      'POST /v1/limits/policy application/yaml',
      'rules:\n  - {return: 1, method: direct, when: {a: {any: true}}, result: 2}\n',
    ),
    seed('POST /v1/limits/convert?format=json application/yaml', 'rules: []\n'),
    seed('POST /v1/limits/multi_browse application/json', { requests: [{ user: '1' }] }),
    seed('GET /v1/limits/dump?format=yaml text/plain'),
    seed('GET /v1/limits/diff?from=0&to=1 text/plain'),
  ],
  async open() {
    hub = await startHub({
      logLevel: 'silent',
      plugins: [async (app) => void (await app.register(limitsRoutes, { service: new RuleService() }))],
    })
  },
  async close() {
    await hub?.close()
  },
  async run(input) {
    const end = input.indexOf(10)
    const [method = '', path = '', ...type] = input.toString('latin1', 0, end < 0 ? input.length : end).split(' ')
    // What the client's own library would not send.
    if (!/^(GET|PUT|POST|DELETE)$/.test(method) || !/^\/[!-~]*$/.test(path) || !/^[!-~]*$/.test(type.join(''))) return
    const { status, body } = await call(
      method,
      path,
      type.join(''),
      end < 0 ? Buffer.alloc(0) : input.subarray(end + 1),
    )
    if (status >= 500) throw new LawBroken(`${status} ${method} ${path.slice(0, 40)}: ${body.slice(0, 200)}`)
  },
}
