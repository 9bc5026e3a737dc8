import { expect, test } from 'vitest'
import { parseInfo, serverModeOf } from './server-info.ts'

/** The first lines of INFO, as sent by real servers. */
const recorded = {
  'Redis 7.0 alone':
    '# Server\r\nredis_version:7.0.15\r\nredis_git_sha1:00000000\r\nredis_git_dirty:0\r\nredis_mode:standalone\r\nos:Linux 6.1.0 x86_64\r\n',
  'Redis 7.0 in a cluster':
    '# Server\r\nredis_version:7.0.15\r\nredis_git_sha1:00000000\r\nredis_mode:cluster\r\nos:Linux 6.1.0 x86_64\r\n',
  'Redis 7.0 as Sentinel': '# Server\r\nredis_version:7.0.15\r\nredis_mode:sentinel\r\nos:Linux 6.1.0 x86_64\r\n',
  'Valkey 8 in a cluster':
    '# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\nvalkey_release_stage:ga\r\nserver_mode:cluster\r\nos:Linux 6.1.0 x86_64\r\n',
  'Valkey 8 as Sentinel':
    '# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\nserver_mode:sentinel\r\n',
  'Valkey 8 alone':
    '# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\nserver_mode:standalone\r\n',
  'a server that says nothing of it': '# Server\r\nredis_version:2.8.0\r\n',
}

test('a server identifies itself, Valkey in its own fields', () => {
  const modes = Object.values(recorded).map((text) => serverModeOf(parseInfo(text)))
  expect(modes).toEqual(['standalone', 'cluster', 'sentinel', 'cluster', 'sentinel', 'standalone', 'standalone'])
})

test('a value may contain colons, and a heading is not a field', () => {
  expect([...parseInfo('# Server\nslave0:ip=::1,port=7000\nempty:\n')]).toEqual([
    ['slave0', 'ip=::1,port=7000'],
    ['empty', ''],
  ])
})
