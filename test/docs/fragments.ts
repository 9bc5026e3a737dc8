import type { CodeBlock } from './pages.ts'

/** A block of code that is incomplete, and what the surrounding text has introduced. */
interface Fragment {
  readonly page: string
  /** Something that only this block has. */
  readonly holds: string
  /** Code in front of it for compiling. */
  readonly before: string
  /** Code in front of it for running: values instead of their types. @default the same */
  readonly whenRun?: string
}

const client = `import { getOrLoad, KeyLimitedError, protect } from '@firebreak/client'
import { Redis } from 'ioredis'
const redis = new Redis()
export { getOrLoad, KeyLimitedError, protect, redis }
`

/** The blocks that depend on the text around them. All others compile as they are. */
export const fragments: readonly Fragment[] = [
  { page: 'docs/guides/client.md', holds: 'diskTier:', before: client },
  {
    page: 'docs/guides/client.md',
    holds: 'renderFromDatabase(1)',
    before: `${client}declare function renderFromDatabase(page: number): Promise<string>\n`,
    whenRun: `${client}const renderFromDatabase = async (page: number) => \`page \${page}\`\n`,
  },
  {
    page: 'docs/guides/client.md',
    holds: 'instanceof KeyLimitedError',
    before: `${client}declare const response: { header(name: string, value: number): void }\n`,
    whenRun: client,
  },
  {
    page: 'docs/guides/client.md',
    holds: 'redactKey:',
    before: `${client}declare const salt: string\n`,
    whenRun: `${client}const salt = 'salt'\n`,
  },
  {
    page: 'docs/guides/ids.md',
    holds: 'SnowflakeNode.start',
    before: 'declare const logger: { error(fields: object, message: string): void }\n',
  },
  {
    page: 'docs/guides/limits.md',
    holds: 'limitKoa(',
    before: `import { localLimiter, tokenBucket } from '@firebreak/limits'
const shared = localLimiter(tokenBucket({ capacity: 10, refill: 5, perMs: 1000 }))
declare const app: import('express').Express & Pick<import('@nestjs/common').INestApplication, 'useGlobalGuards'>
declare const koa: { use(middleware: ReturnType<typeof limitKoa>): void }
`,
  },
  {
    page: 'docs/guides/locks.md',
    holds: 'charge(order',
    before:
      'declare const order: object\ndeclare function charge(order: object, options: { signal: AbortSignal; fencingToken: unknown }): Promise<void>\n',
    whenRun:
      "const order = {}\nconst charge = async (_: object, { fencingToken }: { fencingToken: unknown }) => { if (!fencingToken) throw new Error('no token') }\n",
  },
  {
    page: 'docs/guides/locks.md',
    holds: 'new LockReporter',
    before: "declare const locks: import('@firebreak/locks').Locks\n",
    whenRun:
      "import { Locks } from '@firebreak/locks'\nimport { Redis } from 'ioredis'\nconst locks = new Locks(new Redis())\n",
  },
  {
    page: 'docs/guides/sale.md',
    holds: 'new OrderWorker',
    before: 'declare const logger: { error(error: unknown): void }\n',
    whenRun: 'const logger = { error: (error: unknown) => { throw error } }\n',
  },
]

/** A block as a complete module, for compiling or for running. */
export function wholeOf({ place, text }: CodeBlock, purpose: 'compile' | 'run'): string {
  const fragment = fragments.find(({ page, holds }) => place.startsWith(`${page}:`) && text.includes(holds))
  const before = (purpose === 'run' ? fragment?.whenRun : undefined) ?? fragment?.before ?? ''
  return `${before}${text}\n`
}
