import { InvalidOptionError, type Runtime, systemRuntime } from '@firebreak/core'
import { IdsError } from '../errors.ts'
import { mariadbSegmentStore } from './mariadb-store.ts'
import { postgresSegmentStore } from './postgres-store.ts'
import type { SegmentStore } from './segment-store.ts'
import { sqliteSegmentStore } from './sqlite-store.ts'

const connectTimeoutMs = 5000
const transactionTimeoutMs = 15_000

/**
 * Opens the store at an address: `mysql://…` or `mariadb://…` (needs `mysql2`), `postgres://…` (needs `pg`), or
 * `sqlite:FILE`. With `?ssl-mode=VERIFY_IDENTITY` (MariaDB, MySQL) or `?sslmode=verify-full` (Postgres) over TLS, whose
 * certificate must name the host and come from an authority that Node trusts.
 */
export async function openSegmentStore(address: string, runtime: Runtime = systemRuntime): Promise<SegmentStore> {
  const scheme = address.match(/^([a-z]+):/)?.[1]
  switch (scheme) {
    case 'mysql':
    case 'mariadb': {
      const url = parseUrl(address)
      const { createPool } = await driver('mysql2', () => import('mysql2/promise'))
      const pool = createPool({
        host: url.hostname,
        port: Number(url.port || 3306),
        user: decodeURIComponent(url.username),
        password: decodeURIComponent(url.password),
        database: decodeURIComponent(url.pathname.slice(1)),
        connectionLimit: 10,
        connectTimeout: connectTimeoutMs,
        ...(isTls(url) && { ssl: { rejectUnauthorized: true, verifyIdentity: true } }),
      })
      return mariadbSegmentStore(pool, withoutPassword(url), transactionTimeoutMs, runtime)
    }
    case 'postgres':
    case 'postgresql': {
      const url = parseUrl(address)
      const { default: pg } = await driver('pg', () => import('pg'))
      const pool = new pg.Pool({ connectionString: address, max: 10, connectionTimeoutMillis: connectTimeoutMs })
      return postgresSegmentStore(pool, withoutPassword(url), transactionTimeoutMs, runtime)
    }
    case 'sqlite':
      return sqliteSegmentStore(address.slice('sqlite:'.length))
    default:
      throw new InvalidOptionError('database', address, 'mysql://…, mariadb://…, postgres://… or sqlite:FILE')
  }
}

function parseUrl(address: string): URL {
  if (URL.canParse(address) && new URL(address).hostname !== '') return new URL(address)
  throw new InvalidOptionError('database', address, 'a URL such as mysql://user:password@host/name')
}

/** TLS is never without a look at the certificate; a parameter that would be passed over is refused. */
function isTls(url: URL): boolean {
  const wanted = [...url.searchParams].filter(([name]) => /ssl|tls/i.test(name))
  const modes = wanted.map(([name, value]) => (name === 'ssl-mode' ? value.toUpperCase() : undefined))
  if (modes.every((mode) => mode === 'DISABLED')) return false
  if (modes.every((mode) => mode === 'VERIFY_IDENTITY')) return true
  throw new InvalidOptionError('database', wanted.map(([name]) => name).join(), 'ssl-mode=VERIFY_IDENTITY or DISABLED')
}

function withoutPassword(url: URL): string {
  return `${url.protocol}//${url.host}${url.pathname}`
}

async function driver<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load()
  } catch (cause) {
    throw new IdsError(
      'FB_IDS_DRIVER_MISSING',
      `the package "${name}" is needed: npm install ${name}`,
      { driver: name },
      { cause },
    )
  }
}
