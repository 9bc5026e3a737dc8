import { InvalidOptionError } from '../errors/firebreak-error.ts'

/** Where reports are stored on Kafka; sensors and hubs must agree on it. */
export const kafkaReports = {
  topic: 'firebreak-reports',
  /** The consumer group shared by all hubs: each report goes to one of them. */
  group: 'firebreak-hubs',
} as const

/** The brokers of a Kafka cluster and how to reach them. */
export interface KafkaAddress {
  readonly brokers: readonly string[]
  readonly topic: string
  readonly isTls: boolean
  readonly sasl?: { readonly mechanism: KafkaMechanism; readonly username: string; readonly password: string }
}

const mechanisms = ['plain', 'scram-sha-256', 'scram-sha-512'] as const
type KafkaMechanism = (typeof mechanisms)[number]

/** True if a URL names Kafka brokers. */
export function isKafkaUrl(text: string): boolean {
  return /^kafkas?:\/\//.test(text)
}

/**
 * `kafka://[user:password@]host[:port][,host[:port]…][/topic][?sasl=plain|scram-sha-256|scram-sha-512]`, with `kafkas` for
 * TLS. `option` names the setting in the error.
 */
export function parseKafkaUrl(text: string, option: string): KafkaAddress {
  const match = /^kafka(s?):\/\/(?:([^@/?]*)@)?([^@/?]+)(?:\/([^/?]*))?(?:\?(.*))?$/.exec(text)
  // The text itself may contain a password.
  const refuse = (wanted: string): never => {
    throw new InvalidOptionError(option, 'kafka://…', wanted)
  }
  if (match === null) return refuse('kafka://[user:password@]host:port[,host:port…][/topic]')
  const [, secure, userInfo, hosts, topic, query] = match
  const brokers = hosts!.split(',').map((host) => (/:\d+$/.test(host) ? host : `${host}:9092`))
  if (brokers.some((broker) => !/^(\[[\da-f:]+\]|[\w.-]+):\d{1,5}$/i.test(broker)))
    return refuse('brokers as host:port, separated by commas')
  const name = decoded(topic ?? '')
  if (name !== '' && !/^[\w.-]{1,249}$/.test(name)) return refuse('a topic made of letters, digits, ".", "_" and "-"')
  const address = { brokers, topic: name === '' ? kafkaReports.topic : name, isTls: secure === 's' }
  const parameters = new URLSearchParams(query ?? '')
  for (const parameter of parameters.keys())
    if (parameter !== 'sasl') return refuse('no parameter other than sasl after the "?"')
  if (userInfo === undefined || userInfo === '') return address
  const mechanism = (parameters.get('sasl') ?? 'plain') as KafkaMechanism
  if (!mechanisms.includes(mechanism)) return refuse(`sasl as one of ${mechanisms.join(', ')}`)
  const colon = userInfo.indexOf(':')
  if (colon < 0) return refuse('user:password before the "@"')
  const [username, password] = [userInfo.slice(0, colon), userInfo.slice(colon + 1)].map(decoded) as [string, string]
  return { ...address, sasl: { mechanism, username, password } }

  function decoded(part: string): string {
    try {
      return decodeURIComponent(part)
    } catch {
      return refuse('percent signs that are encoded as %25')
    }
  }
}
