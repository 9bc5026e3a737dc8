import { Agent, request } from 'node:http'
import { formatTextReport } from '@firebreak/core'
import { type Hub, limitsRoutes, startHub } from '@firebreak/hub'
import { RuleService } from '@firebreak/limits/policy'
import { bodyExamples } from '../../../packages/hub/src/http/api-examples.ts'
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

/** Would make the hub call an address of the input's, or a dry run that may take 30 s in a thread of its own. */
const leftOut = /alert-routes|finders|dry-run/
/** Every body in the API's document, so that none becomes outdated. */
const documented = () =>
  Object.entries(bodyExamples)
    .filter(([route]) => !leftOut.test(route))
    .map(([route, body]) => {
      const type = typeof body === 'string' ? 'text/plain' : 'application/json'
      return seed(`${route.replace(/:\w+/g, 'a')} ${type}`, body)
    })
const owned = { name: 'order:1', kind: 'lock', owner: 'host-1:7' }
const spread = { count: 1, sumMs: 2, maxMs: 2, buckets: [1] }
const lockReport = {
  ...{
    version: 1,
    serviceId: 'shop',
    hostId: 'host-1',
    instanceId: 'i1',
    validMs: 5000,
    heldCount: 1,
    waitingCount: 1,
  },
  held: [{ ...owned, token: 5, holdCount: 1, heldMs: 20, remainingMs: 900, isRenewed: true }],
  waiting: [{ ...owned, waitingMs: 3 }],
  metrics: {
    ...{ acquired: 1, contended: 1, handedOver: 0, refused: 0, released: 1, renewals: 2, renewalErrors: 0 },
    ...{ lost: { expired: 0, taken: 0 }, wait: spread, hold: spread },
  },
}
const finding = {
  ...{
    version: 1,
    id: '123e4567-e89b-42d3-a456-426614174000',
    kind: 'hot',
    method: 'scan',
    startedAtMs: 1_700_000_000_000,
  },
  ...{ tookMs: 5, source: ['127.0.0.1:6379'], topology: 'standalone', isComplete: true, scanned: 10, total: 10 },
  keys: [{ key: 'product_1', database: 0, type: 'string', bytes: 100, share: 0.5, commands: { GET: 3 } }],
}

/** Requests to a real hub: `METHOD /path content/type` in the first line, then the body. */
export const hubHttpTarget: FuzzTarget = {
  name: 'hub-http',
  batch: 32,
  jsonAt: (input) => {
    const at = input.indexOf(10) + 1
    return input[at] === 0x7b || input[at] === 0x5b ? at : -1
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
    ...documented(),
    seed('POST /v1/locks application/json', lockReport),
    seed('POST /v1/locks/release application/json', { kind: 'lock', name: 'order:1' }),
    seed('GET /v1/locks?prefix=order text/plain'),
    seed('POST /v1/findings application/json', finding),
    seed('POST /v1/session application/json', { token: 'guess' }),
    seed('POST /v1/session application/json', { name: 'x', password: 'guess' }),
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
    seed('POST /v1/limits/convert?to=json application/yaml', 'rules: []\n'),
    seed('POST /v1/limits/multi_browse application/json', [{ ID: 1, Arg: 'user=1&act=2' }]),
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
    // Requests that the client's library would not send.
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
