import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type GuardedChild, startChild, temporaryFolder } from '../process/child.ts'
import { copyDataTemplate } from './data-template.ts'
import { startServer } from './start-server.ts'

const execute = promisify(execFile)

/** How a test's MariaDB is started. */
export interface MariadbServerOptions {
  /** More arguments, as `['--log-bin=binlog', '--binlog-format=ROW', '--server-id=1']`. */
  readonly args?: readonly string[]
  /** A fixed port, for a restart on the same one. @default a free port */
  readonly port?: number
  /** Its folder, for a restart with its data. @default a new temporary folder */
  readonly folder?: string
}

/** A real MariaDB on loopback with an empty database `test`, user `root` without a password; dies with this process. */
export interface MariadbServer {
  readonly host: '127.0.0.1'
  readonly port: number
  readonly user: 'root'
  readonly database: 'test'
  /** `mysql://root@127.0.0.1:PORT/test` */
  readonly url: string
  readonly folder: string
  readonly child: GuardedChild
  /** Runs statements with the `mariadb` program: rows as lines, columns with tabs between them. */
  sql(statements: string): Promise<string>
  /** Starts it again on the same port and data, after `stop` or a kill. */
  restart(args?: readonly string[]): Promise<MariadbServer>
  stop(): Promise<void>
}

const user = process.getuid?.() === 0 ? ['--user=root'] : []

/** Starts a MariaDB and waits until it answers a query. */
export async function startMariadb(options: MariadbServerOptions = {}): Promise<MariadbServer> {
  const folder = options.folder ?? temporaryFolder('mariadb')
  const data = join(folder, 'data')
  if (!existsSync(data)) await copyDataTemplate('mariadb', makeData, data)
  const { port, child } = await startServer({
    name: 'mariadbd',
    port: options.port,
    launch: (port) =>
      startChild('mariadbd', [
        '--no-defaults',
        `--datadir=${data}`,
        `--socket=${join(folder, 'mariadb.sock')}`,
        `--pid-file=${join(folder, 'mariadb.pid')}`,
        `--port=${port}`,
        '--bind-address=127.0.0.1',
        // Survives a kill of the process (not of the machine) without a disk flush for every commit.
        '--innodb-flush-log-at-trx-commit=2',
        '--innodb-buffer-pool-size=32M',
        '--innodb-log-file-size=8M',
        ...user,
        ...(options.args ?? []),
      ]),
    answers: async (port) => {
      try {
        await run(port, 'SELECT 1')
        return true
      } catch {
        return false
      }
    },
    // A killed server's lock on its files may outlive it for a moment.
    mayRetry: /Address already in use|Unable to lock/,
  })
  return {
    host: '127.0.0.1',
    port,
    user: 'root',
    database: 'test',
    url: `mysql://root@127.0.0.1:${port}/test`,
    folder,
    child,
    sql: (statements) => run(port, statements),
    restart: async (args) => {
      await child.stop()
      return startMariadb({ ...options, port, folder, args: args ?? options.args ?? [] })
    },
    stop: () => child.stop(),
  }
}

async function makeData(folder: string): Promise<void> {
  await execute('mariadb-install-db', [
    '--no-defaults',
    `--datadir=${folder}`,
    '--auth-root-authentication-method=normal',
    '--skip-test-db',
    '--innodb-log-file-size=8M',
    ...user,
  ])
  const socket = join(folder, '..', 'making.sock')
  const child = startChild('mariadbd', [
    '--no-defaults',
    `--datadir=${folder}`,
    `--socket=${socket}`,
    '--skip-networking',
    '--innodb-log-file-size=8M',
    ...user,
  ])
  await child.printed(/ready for connections/)
  // Only root may come without a password, and from loopback by its number too; `test` is there as clients expect.
  await execute('mariadb', [
    '--no-defaults',
    `--socket=${socket}`,
    '-uroot',
    '-e',
    "CREATE DATABASE test; CREATE OR REPLACE USER root@'127.0.0.1'; GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION",
  ])
  await child.stop(30_000)
}

async function run(port: number, statements: string): Promise<string> {
  const args = [
    '--no-defaults',
    '-h127.0.0.1',
    `-P${port}`,
    '-uroot',
    '--skip-ssl',
    '-N',
    '-B',
    'test',
    '-e',
    statements,
  ]
  const { stdout } = await execute('mariadb', args, { maxBuffer: 64 << 20 })
  return stdout.replace(/\n$/, '')
}
