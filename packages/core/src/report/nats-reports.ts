/** Where reports lie on a NATS JetStream; sensors and hubs must agree on it. */
export const natsReports = {
  stream: 'FIREBREAK_REPORTS',
  subject: 'firebreak.reports',
  /** A hub puts a message here to see what time it is on the server. */
  clockSubject: 'firebreak.clock',
  /** The durable consumer that all hubs share: each report goes to one of them. */
  consumer: 'firebreak-hubs',
} as const
