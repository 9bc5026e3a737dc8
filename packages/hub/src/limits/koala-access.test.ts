import { expect, test } from 'vitest'
import { openHubServices } from '../services/hub-services.ts'
import { startHub } from '../start-hub.ts'

test('under Koala’s paths a GET counts, so whoever may only look is refused there, and nowhere else', async () => {
  const people = (['viewer', 'operator'] as const).map((role) => ({
    name: role,
    role,
    token: `${role}-0123456789abcdef`,
  }))
  const services = await openHubServices({ koalaPaths: true })
  const hub = await startHub({ logLevel: 'silent', tokens: { apps: [], people }, plugins: services.plugins })
  const ask = async (role: string, path: string) => {
    const headers = role === 'nobody' ? {} : { authorization: `Bearer ${role}-0123456789abcdef` }
    return (await fetch(`${hub.url}${path}`, { headers })).status
  }
  for (const path of [
    '/rule/browse?uid=1',
    '/rule/update?uid=1',
    '/rule/browse_complete?uid=1',
    '/rule/feedback?uid=1',
  ]) {
    expect(await ask('nobody', path)).toBe(401)
    expect(await ask('viewer', path)).toBe(403)
    expect(await ask('operator', path)).toBe(200)
  }
  expect(await ask('viewer', '/v1/limits/browse?uid=1')).toBe(200)
  expect(await ask('viewer', '/monitor/alive')).toBe(200)
  await hub.close()
  await services.close()
})
