import { execFile, execFileSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type GuardedChild, startChild, temporaryFolder } from '../process/child.ts'
import { copyDataTemplate } from './data-template.ts'
import { startServer } from './start-server.ts'

const execute = promisify(execFile)

/** How a test's PostgreSQL is started. */
export interface PostgresServerOptions {
  /** More arguments, as `['-c', 'wal_level=logical']`. */
  readonly args?: readonly string[]
  /** A fixed port, for a restart on the same one. @default a free port */
  readonly port?: number
  /** Its folder, for a restart with its data. @default a new temporary folder */
  readonly folder?: string
}

/** A real PostgreSQL on loopback, user and database `postgres` without a password; dies with this process. */
export interface PostgresServer {
  readonly host: '127.0.0.1'
  readonly port: number
  readonly user: 'postgres'
  readonly database: 'postgres'
  /** `postgres://postgres@127.0.0.1:PORT/postgres` */
  readonly url: string
  readonly folder: string
  readonly child: GuardedChild
  /** Runs statements with `psql`: rows as lines, columns with tabs between them. */
  sql(statements: string): Promise<string>
  /** Starts it again on the same port and data, after `stop` or a kill. */
  restart(args?: readonly string[]): Promise<PostgresServer>
  stop(): Promise<void>
}

/** Starts a PostgreSQL and waits until it answers a query. */
export async function startPostgres(options: PostgresServerOptions = {}): Promise<PostgresServer> {
  const folder = options.folder ?? temporaryFolder('postgres')
  const data = join(folder, 'data')
  if (!existsSync(data)) {
    await copyDataTemplate('postgres', makeData, data)
    // Copying loses the mode that PostgreSQL insists on.
    chmodSync(data, 0o700)
    giveToPostgres(folder)
  }
  const { port, child } = await startServer({
    name: 'postgres',
    port: options.port,
    launch: (port) => {
      const settings = [`port=${port}`, 'listen_addresses=127.0.0.1', `unix_socket_directories=${folder}`, 'fsync=off']
      const args = ['-D', data, ...settings.flatMap((setting) => ['-c', setting]), ...(options.args ?? [])]
      const [program, all] = asPostgres(programPath('postgres'), args)
      return startChild(program, all, { cwd: folder })
    },
    answers: async (port) => {
      try {
        await run(port, 'SELECT 1')
        return true
      } catch {
        return false
      }
    },
    // The children of a killed server see its end a moment later and hold its shared memory until then.
    mayRetry: /Address already in use|shared memory block|lock file/,
  })
  const stop = async () => {
    // SIGTERM would wait for the clients to leave; SIGINT ends their transactions.
    child.signal('SIGINT')
    await child.stop(10_000)
  }
  return {
    host: '127.0.0.1',
    port,
    user: 'postgres',
    database: 'postgres',
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    folder,
    child,
    sql: (statements) => run(port, statements),
    restart: async (args) => {
      await stop()
      return startPostgres({ ...options, port, folder, args: args ?? options.args ?? [] })
    },
    stop,
  }
}

async function makeData(folder: string): Promise<void> {
  // initdb makes its folder itself, as the user that will own it.
  giveToPostgres(join(folder, '..'))
  const args = ['-D', folder, '-A', 'trust', '-U', 'postgres', '--no-sync', '--no-locale', '-E', 'UTF8']
  const [program, all] = asPostgres(programPath('initdb'), args)
  await execute(program, all, { cwd: '/' })
}

/** Debian keeps each version's programs in a folder of its own. */
function programPath(name: string): string {
  const versions = '/usr/lib/postgresql'
  const newest = existsSync(versions) ? readdirSync(versions).sort((a, b) => Number(b) - Number(a))[0] : undefined
  return newest === undefined ? name : join(versions, newest, 'bin', name)
}

const isRoot = process.getuid?.() === 0

/** PostgreSQL refuses to run as root: there it runs as the user `postgres`. */
function asPostgres(program: string, args: readonly string[]): [string, string[]] {
  if (!isRoot) return [program, [...args]]
  return ['setpriv', ['--reuid=postgres', '--regid=postgres', '--init-groups', program, ...args]]
}

function giveToPostgres(folder: string): void {
  if (!isRoot) return
  const [uid, gid] = ['-u', '-g'].map((flag) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' })))
  chownSync(folder, uid!, gid!)
  for (const entry of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    chownSync(join(folder, entry), uid!, gid!)
  }
}

async function run(port: number, statements: string): Promise<string> {
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  const args = ['-X', '-q', '-A', '-t', '-F', '\t', '-v', 'ON_ERROR_STOP=1', '-d', url, '-c', statements]
  const { stdout } = await execute('psql', args, { maxBuffer: 64 << 20 })
  return stdout.replace(/\n$/, '')
}
