import { describeValue, FirebreakError } from '@firebreak/core'

/** `protect` was given something that its hooks do not know. */
export class ClientUnsupportedError extends FirebreakError {
  constructor(client: unknown, name: string = describeValue(client)) {
    super(
      'FB_CLIENT_UNSUPPORTED',
      `protect: ${name} is not an ioredis (5, 6), iovalkey or node-redis (5.12 or later, 6) client; pass one of these`,
    )
  }
}
