import type { CommandIo } from '../command/command.ts'

/** Reloads a policy file on SIGHUP; the returned function ends that. */
export function onHangUp(command: string, reload: () => Promise<number>, io: CommandIo): () => void {
  const listener = () => {
    reload().then(
      (version) => io.stdout.write(`policy version ${version}\n`),
      (error: Error) => io.stderr.write(`${command}: ${error.message}; the old policy stays\n`),
    )
  }
  process.on('SIGHUP', listener)
  return () => void process.off('SIGHUP', listener)
}
