import { getSystemErrorName } from 'node:util'

/** The result of a raw handle's system call, as an error like those of Node's sockets. */
export function systemError(call: string, status: number, place = ''): NodeJS.ErrnoException {
  const code = getSystemErrorName(status)
  return Object.assign(new Error(`${call} ${code} ${place}`.trim()), { code })
}
