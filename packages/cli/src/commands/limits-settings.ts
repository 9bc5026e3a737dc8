import { choiceOf, onOrOff, portNumber, portSettings, type SettingTable, text } from '@firebreak/core/settings'

/** The settings of `firebreak limits`. */
export const limitsSettings: SettingTable = {
  command: 'limits',
  prefix: 'FIREBREAK_LIMITS_',
  settings: [
    { name: 'policy', type: text, placeholder: 'FILE', default: 'no rules', summary: 'the policy file' },
    {
      name: 'dataFolder',
      type: text,
      placeholder: 'FOLDER',
      default: 'a restart uses the policy file, at version 1',
      summary: 'where policies and their authors are kept across restarts',
    },
    {
      name: 'host',
      type: text,
      placeholder: 'HOST',
      default: '127.0.0.1',
      summary: 'the address to listen on; beyond loopback a token is required',
    },
    { name: 'port', type: portNumber, default: '4980', summary: 'the port, 0 for a free one' },
    {
      name: 'redis',
      type: text,
      placeholder: 'URL',
      default: 'counters in this process',
      isSecret: true,
      summary: 'the Redis that holds the counters',
    },
    {
      name: 'leakStorage',
      type: choiceOf('list', 'zset'),
      default: 'list',
      summary: 'how to store a leaky bucket on Redis',
    },
    {
      name: 'prefix',
      type: text,
      placeholder: 'PREFIX',
      default: '{fb:rules}',
      summary: 'prefix for the names of counters on Redis',
    },
    {
      name: 'token',
      type: text,
      placeholder: 'TOKEN',
      default: 'none',
      isSecret: true,
      summary: 'the token that clients must send',
    },
    ...portSettings,
    {
      name: 'koalaPaths',
      type: onOrOff,
      default: 'off',
      summary: "also serve Koala's own paths (/rule/browse, …), where a GET counts",
    },
  ],
}
