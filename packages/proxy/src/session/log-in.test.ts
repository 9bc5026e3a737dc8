import { fakeRuntime } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { nobody } from '../upstream/identity.ts'
import { LogIn } from './log-in.ts'
import { ProxyUsers } from './proxy-users.ts'

const users = new ProxyUsers([{ name: 'ann', password: 'correct-horse' }], nobody)
const logger = { info() {}, warn() {} }
const repliesTo = (name: string) => {
  const logIn = new LogIn(users, fakeRuntime(), logger)
  return Array.from({ length: 12 }, () => {
    const result = logIn.logIn(name, Buffer.from('guess'), '10.0.0.1:5000')
    return 'reply' in result ? result.reply.toString() : 'let in'
  })
}

test('an unknown name is refused in the same way as a known one', () => {
  const [known, unknown] = [repliesTo('ann'), repliesTo('eve')]
  expect(unknown).toEqual(known)
  expect(known.map((reply) => reply.split(' ')[0])).toEqual([...Array(10).fill('-WRONGPASS'), '-ERR', '-ERR'])
})

test('unknown names do not lock any user out', () => {
  const logIn = new LogIn(users, fakeRuntime(), logger)
  for (let nth = 0; nth < 20_000; nth++) logIn.logIn(`name-${nth}`, Buffer.from('guess'), '10.0.0.1:5000')
  expect(logIn.logIn('ann', Buffer.from('correct-horse'), '10.0.0.1:5000')).toBe(nobody)
})
