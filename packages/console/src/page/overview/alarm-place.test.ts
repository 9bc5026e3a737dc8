import { expect, test, vi } from 'vitest'

vi.stubGlobal('location', { hash: '' })
vi.stubGlobal('addEventListener', () => {})
const { alarmPlace } = await import('./alarm-place.ts')

test.each([
  ['sale:tv/dead-letters', '#/sale?voucher=tv'],
  ['sale:redis', '#/sale'],
  ['stale:price:*', '#/rules?edit=price%3A*'],
  ['rollout:checkout', '#/rules?edit=checkout'],
  ['watcher:shop/host-1/main', '#/fleet?filter=shop'],
  ['hot-keys', '#/rules'],
  ['finder:main/big', '#/finders'],
])('the alarm %s leads to %s', (id, address) => {
  expect(alarmPlace(id)?.address).toBe(address)
})

test('an alarm whose sentence says all leads nowhere, nor does a name that every object has', () => {
  expect(['store', 'board', 'constructor', ''].map(alarmPlace)).toEqual([undefined, undefined, undefined, undefined])
})
