import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { systemTimers } from '@firebreak/core'
import { FakeClock, freePort } from '@firebreak/testkit'
import { afterEach, expect, test } from 'vitest'
import { HttpReporter } from './http-reporter.ts'
import { parseHubUrl } from './hub-address.ts'
import { type PendingReport, SectionWriter } from './pending-report.ts'
import { ReportQueue } from './report-queue.ts'

const reporter = { serviceId: 'shop', hostId: 'host', instanceId: 'one' }
let server: Server | undefined

afterEach(() => {
  server?.closeAllConnections()
  server?.close()
})

/** A hub with scripted answers, and what was sent to it. */
async function startHub(answer: RequestListener): Promise<{ url: string; bodies: string[] }> {
  const bodies: string[] = []
  server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    bodies.push(body)
    answer(request, response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, bodies }
}

function queueOf(...times: number[]): ReportQueue {
  const queue = new ReportQueue(100, 1000)
  for (const collectTs of times) {
    const section = new SectionWriter()
    section.add(`key${collectTs}`, 1, 0, 0)
    const report: PendingReport = { collectTs, sections: [section.finish('main', 1)] }
    queue.push(report)
  }
  return queue
}

/** Sends until the queue is empty, as often as it takes. */
async function sendAll(queue: ReportQueue, url: string): Promise<void> {
  const http = new HttpReporter(reporter, undefined, new FakeClock(), systemTimers)
  while (queue.length > 0) await http.send(queue, parseHubUrl(url))
}

test('a report whose answer is lost is not sent again: the hub may have counted it', async () => {
  let requests = 0
  const { url, bodies } = await startHub((request, response) => {
    requests++
    if (requests === 2) request.socket.destroy()
    else response.end()
  })
  await sendAll(queueOf(1, 2, 3), url)
  expect(bodies.map((body) => body.match(/key\d/)?.[0])).toEqual(['key1', 'key2', 'key3'])
})

test.each([503, 404])('a report that the hub answers with %i is sent again', async (status) => {
  let requests = 0
  const { url, bodies } = await startHub((_, response) => {
    response.statusCode = ++requests === 1 ? status : 200
    response.end()
  })
  await sendAll(queueOf(1, 2), url)
  expect(bodies.map((body) => body.match(/key\d/)?.[0])).toEqual(['key1', 'key1', 'key2'])
})

test('if no hub listens, reports are kept', async () => {
  const queue = queueOf(1, 2)
  const http = new HttpReporter(reporter, undefined, new FakeClock(), systemTimers)
  await http.send(queue, parseHubUrl(`http://127.0.0.1:${await freePort()}`))
  expect([queue.length, queue.taken, queue.dropped]).toEqual([2, 0, 0])
})
