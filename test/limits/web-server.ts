// Serves every scenario of the middleware tests in one framework, each on a port of its own: node web-server.ts FRAMEWORK
import 'reflect-metadata'
import { createServer, type Server } from 'node:http'
import {
  fixedWindow,
  type HttpLimitCounts,
  type HttpLimitOptions,
  leakyQueue,
  localLimiter,
  tokenBucket,
} from '@firebreak/limits'
import { limitRequests as expressLimit } from '@firebreak/limits/express'
import { limitRequests as fastifyLimit } from '@firebreak/limits/fastify'
import { limitRequests as honoLimit } from '@firebreak/limits/hono'
import { limitRequests as koaLimit } from '@firebreak/limits/koa'
import { LimitGuard } from '@firebreak/limits/nest'
import { Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import express from 'express'
import { fastify } from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'

interface Opened {
  readonly port: number
  readonly counts: HttpLimitCounts
}

type Options = HttpLimitOptions<never>

const hourly = fixedWindow({ limit: 1, windowMs: 3_600_000, anchor: 'firstHit' })
const hourlyLimiter = localLimiter(hourly, { name: 'hourly' })
const denied: string[] = []

const scenarios: Record<string, Options> = {
  plain: { limiter: hourlyLimiter },
  shadow: {
    limiter: localLimiter(hourly),
    shadow: true,
    key: () => 'everybody',
    onDenied: (_, key) => denied.push(key),
  },
  several: {
    limiter: [
      localLimiter(tokenBucket({ capacity: 1, refill: 1, perMs: 60_000 }), { name: 'minute' }),
      localLimiter(fixedWindow({ limit: 5, windowMs: 3_600_000 }), { name: 'hour' }),
    ],
  },
  paced: { limiter: localLimiter(leakyQueue({ intervalMs: 200, queue: 1 })) },
  keyless: { limiter: localLimiter(hourly), key: () => undefined },
  costly: { limiter: localLimiter(hourly, { name: 'hourly' }), cost: () => 2 },
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as { port: number }).port
}

const frameworks: Record<string, (options: Options) => Promise<Opened>> = {
  express: async (options) => {
    const app = express()
    const limit = expressLimit(options)
    app.use(limit as never)
    app.get('/', (_, response) => void response.send('hello'))
    const server = createServer(app)
    return { port: await listen(server), counts: limit.counts }
  },
  fastify: async (options) => {
    const app = fastify()
    const limit = fastifyLimit(options)
    app.addHook('onRequest', limit as never)
    app.get('/', () => 'hello')
    await app.listen({ host: '127.0.0.1', port: 0 })
    return { port: (app.server.address() as { port: number }).port, counts: limit.counts }
  },
  hono: async (options) => {
    const app = new Hono()
    const limit = honoLimit(options)
    app.use(limit as never)
    app.get('/', (context) => context.text('hello'))
    const server = createServer(async (incoming, outgoing) => {
      const response = await app.fetch(new Request(`http://localhost${incoming.url}`), { incoming, outgoing })
      outgoing.writeHead(response.status, Object.fromEntries(response.headers))
      outgoing.end(await response.text())
    })
    return { port: await listen(server), counts: limit.counts }
  },
  koa: async (options) => {
    const app = new Koa()
    const limit = koaLimit(options)
    app.use(limit as never)
    app.use((context) => {
      context.body = 'hello'
    })
    const server = createServer(app.callback())
    return { port: await listen(server), counts: limit.counts }
  },
  nest: async (options) => {
    class Hello {
      hello(): string {
        return 'hello'
      }
    }
    // Decorators applied by hand: sources here are plain TypeScript that Node runs as it is.
    Get()(Hello.prototype, 'hello', Object.getOwnPropertyDescriptor(Hello.prototype, 'hello')!)
    Controller()(Hello)
    class App {}
    Module({ controllers: [Hello] })(App)
    const app = await NestFactory.create(App, { logger: false })
    const guard = new LimitGuard(options)
    app.useGlobalGuards(guard)
    await app.listen(0, '127.0.0.1')
    return { port: app.getHttpServer().address().port as number, counts: guard.counts }
  },
}

const opened: Record<string, Opened> = {}
for (const [name, options] of Object.entries(scenarios)) opened[name] = await frameworks[process.argv[2]!]!(options)
process.stdout.write(
  `ports ${JSON.stringify(Object.fromEntries(Object.entries(opened).map(([name, { port }]) => [name, port])))}\n`,
)
process.stdin.on('data', () => {
  const counts = Object.fromEntries(Object.entries(opened).map(([name, server]) => [name, server.counts]))
  const addressLeft = hourlyLimiter.peek('127.0.0.1').remaining
  process.stdout.write(`counts ${JSON.stringify({ counts, denied, addressLeft })}\n`)
})
