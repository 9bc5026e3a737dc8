import { Agent, request } from 'node:http'
import { limitsRoutes } from '@firebreak/hub'
import { parsePolicy, RuleService } from '@firebreak/limits/policy'
import { fastify } from 'fastify'
import { type Bench, interleaved, medianRatio, rounds, say } from '../harness/bench.ts'
import { workMs } from '../harness/work-time.ts'

const connections = 50

/** `browse` with 20 rules on counters in process, against a bare route of the same server that answers "ok". */
export async function benchBrowse(bench: Bench): Promise<void> {
  const rules = Array.from({ length: 20 }, (_, index) =>
    index < 15
      ? `rule : [count] [act=other${index}; uid=+] [time=60; count=5] [result=2; return=${index}]`
      : `rule : [${index % 2 === 0 ? 'count' : 'leak'}] [act=ask; uid=+; ip!=10.0.0.0/8] [time=60; count=1000] [result=2; return=${index}]`,
  )
  const service = new RuleService()
  service.load(parsePolicy(`[rules]\n${rules.join('\n')}\n`))
  const app = fastify()
  app.get('/ok', (_, reply) => reply.send('ok'))
  await app.register(limitsRoutes, { service })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as { port: number }
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const calls = rounds(2500, 15_000)
  let user = 0
  try {
    const speeds = await interleaved(rounds(11, 15), {
      browse: () => speedOf(agent, port, calls, () => `/v1/limits/browse?act=ask&uid=${user++ % 5000}&ip=192.168.1.9`),
      bare: () => speedOf(agent, port, calls, () => `/ok?act=ask&uid=${user++ % 5000}&ip=192.168.1.9`),
    })
    say(
      `browse-vs-bare: ${Math.round(Math.max(...speeds.browse) * 1000)} to ${Math.round(Math.max(...speeds.bare) * 1000)} calls/s`,
    )
    bench.report({
      id: 'browse-vs-bare',
      ratio: medianRatio(speeds.browse, speeds.bare),
      of: 'browse with 20 rules, 5 of which apply',
      to: 'a bare Fastify route',
    })
  } finally {
    agent.destroy()
    await app.close()
  }
}

async function speedOf(agent: Agent, port: number, calls: number, pathOf: () => string): Promise<number> {
  let left = calls
  const start = workMs()
  const caller = async () => {
    while (left-- > 0) {
      await new Promise<void>((resolve, reject) => {
        request({ agent, host: '127.0.0.1', port, path: pathOf() }, (response) => {
          response.resume()
          response.on('end', () =>
            response.statusCode === 200 ? resolve() : reject(new Error(`${response.statusCode}`)),
          )
        })
          .on('error', reject)
          .end()
      })
    }
  }
  await Promise.all(Array.from({ length: connections }, caller))
  return calls / (workMs() - start)
}
