import { getSystemErrorName } from 'node:util'

/** What a system call of a raw handle answered, as an error like those of Node's sockets. */
export function systemError(call: string, status: number, place = ''): NodeJS.ErrnoException {
  const code = getSystemErrorName(status)
  return Object.assign(new Error(`${call} ${code} ${place}`.trim()), { code })
}
