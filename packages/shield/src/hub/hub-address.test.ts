import { expect, test } from 'vitest'
import { checkHubUrls, parseHubUrl } from './hub-address.ts'

test('a link is private if it is encrypted or does not leave the machine', () => {
  const isPrivate = (url: string) => parseHubUrl(url).isPrivate
  for (const url of [
    'https://hub.example:7070',
    'wss://10.0.0.1',
    'http://127.0.0.1:7070',
    'ws://[::1]:1',
    'http://localhost',
  ])
    expect([url, isPrivate(url)]).toEqual([url, true])
  for (const url of [
    'http://hub.example',
    'ws://10.0.0.1:7070',
    'http://127.0.0.1.example',
    'http://localhost.example',
  ])
    expect([url, isPrivate(url)]).toEqual([url, false])
})

test('one URL instead of a list of them is refused as such', () => {
  const one = 'http://127.0.0.1:7070' as unknown as string[]
  expect(() => checkHubUrls(one)).toThrow(
    `option hubs is "http://127.0.0.1:7070"; it must be an array, such as ['http://127.0.0.1:7070']`,
  )
})
