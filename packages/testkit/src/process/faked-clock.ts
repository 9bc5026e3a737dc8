import type { SpawnOptions } from 'node:child_process'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type GuardedChild, sourceArgs, startChild, temporaryFolder } from './child.ts'

/*
 * libfaketime names its shared memory by process id, leaves it behind when a process is killed, and refuses to start
 * where it finds some. So a shell removes what an earlier process of its id has left, and becomes the program.
 */
const becomeWithout = 'rm -f /dev/shm/faketime_shm_$$ /dev/shm/sem.faketime_sem_$$; LD_PRELOAD="$0" exec "$@"'

/** Moves the wall clock of processes, and only that; can be changed while they run. */
export class FakedClock {
  readonly #file: string

  constructor(offsetMs = 0) {
    this.#file = join(temporaryFolder('clock'), 'offset')
    this.set(offsetMs)
  }

  set(offsetMs: number): void {
    writeFileSync(this.#file, `${offsetMs >= 0 ? '+' : ''}${offsetMs / 1000}s`)
  }

  /** `startSource` under this clock. */
  startSource(file: string | URL, args: readonly string[] = [], options: SpawnOptions = {}): GuardedChild {
    const path = file instanceof URL ? file.pathname : file
    const env = {
      ...(options.env ?? process.env),
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    }
    const program = [process.execPath, ...sourceArgs, path, ...args]
    return startChild('sh', ['-c', becomeWithout, libfaketime(), ...program], { ...options, env })
  }
}

function libfaketime(): string {
  const folders = readdirSync('/usr/lib').map((name) => `/usr/lib/${name}/faketime/libfaketime.so.1`)
  const found = folders.find((path) => existsSync(path))
  if (found === undefined) throw new Error('libfaketime is not there: apt-get install faketime')
  return found
}
