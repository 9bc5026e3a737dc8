import { lstatSync, unlinkSync } from 'node:fs'
import { connect } from 'node:net'

/** Removes a unix socket that nobody listens on, such as one left behind by a killed process; false if it stays. */
export async function removeStaleSocket(path: string): Promise<boolean> {
  if (!(await isRefused(path)) || lstatSync(path, { throwIfNoEntry: false })?.isSocket() !== true) return false
  unlinkSync(path)
  return true
}

function isRefused(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(false)
    })
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code === 'ECONNREFUSED'))
  })
}
