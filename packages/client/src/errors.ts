import { describeValue, FirebreakError } from '@firebreak/core'

/** `protect` was given something that its hooks do not know. */
export class ClientUnsupportedError extends FirebreakError {
  constructor(client: unknown) {
    super(
      'FB_CLIENT_UNSUPPORTED',
      `protect: ${describeValue(client)} is no ioredis (5, 6) or node-redis (5.12 or later, 6) client; pass one of these`,
    )
  }
}
