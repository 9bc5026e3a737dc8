/** Where reports are stored on NATS JetStream; sensors and hubs must agree on it. */
export const natsReports = {
  stream: 'FIREBREAK_REPORTS',
  subject: 'firebreak.reports',
  /** A hub publishes a message here to read the server's clock. */
  clockSubject: 'firebreak.clock',
  /** The durable consumer shared by all hubs: each report goes to one of them. */
  consumer: 'firebreak-hubs',
} as const
