import { choiceOf, otlpSettings, portNumber, type SettingTable, text } from '@firebreak/core/settings'
import { defaultDataFolder } from './running-file.ts'

/** The settings of `firebreak up`. */
export const upSettings: SettingTable = {
  command: 'up',
  prefix: 'FIREBREAK_UP_',
  settings: [
    {
      name: 'redis',
      type: text,
      placeholder: 'URL',
      default: 'a redis-server or valkey-server on PATH is started, otherwise the embedded Valkey',
      variables: ['REDIS_URL'],
      isSecret: true,
      summary: 'the Redis to protect; of a Redis Cluster one node, or several separated by commas',
    },
    {
      name: 'port',
      type: portNumber,
      default: '7070, or a free one if that is taken',
      variables: ['FIREBREAK_PORT'],
      summary: "the hub's and the console's port",
    },
    {
      name: 'proxyPort',
      type: portNumber,
      default: '6380, or a free one if that is taken',
      variables: ['FIREBREAK_PROXY_PORT'],
      summary: "the proxy's port",
    },
    {
      name: 'data',
      type: text,
      placeholder: 'FOLDER',
      default: defaultDataFolder,
      variables: ['FIREBREAK_DATA'],
      summary: 'where to store rules, history and audit',
    },
    {
      name: 'logLevel',
      type: choiceOf('fatal', 'error', 'warn', 'info', 'debug'),
      default: 'warn',
      variables: ['FIREBREAK_LOG'],
      summary: "the hub's log level",
    },
    ...otlpSettings('firebreak-hub and firebreak-proxy'),
  ],
}
