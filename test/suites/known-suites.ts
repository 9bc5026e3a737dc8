import { join } from 'node:path'
import { hasLastLine, readHiredis, readJunit, readLines, readTcl } from './read-results.ts'
import { type Suite, type SuitePlace, ways } from './suite.ts'

const inside = (name: string) => join(import.meta.dirname, 'inside', name)
const text = (value: string) => value.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
const program = (folder: string, name: string) => join(folder, 'node_modules', '.bin', name)
const linesEnv = ({ results }: SuitePlace) => ({ FIREBREAK_SUITE_RESULTS: results })
// The speed of the machine says nothing about Firebreak, so the suites' own limits of a few seconds are not compared.
const mochaWords = ['--reporter', inside('mocha-reporter.cjs'), '--timeout', '60000']

/** The suites that the runner knows, by the name that the command line takes. */
export const suites: Readonly<Record<string, Suite>> = {
  /** Any folder with tests for `node --test` (`*.test.cjs`) that take their clients from its `lib`. */
  node: {
    ways,
    own: (folder) => `^${text(folder)}/lib/`,
    command: ({ folder, results }) => ({
      program: process.execPath,
      args: ['--test', `--test-reporter=${inside('node-reporter.cjs')}`, `--test-reporter-destination=${results}`],
      cwd: folder,
    }),
    read: readLines,
    hasEnded: hasLastLine,
  },
  ioredis: {
    ways,
    port: 6379,
    leaveOut: {
      copies: {
        words: ['--grep', '^monitor ', '--invert'],
        reason:
          "its tests of MONITOR throw in a listener on a command that is not their own, and the shield's own are there",
      },
    },
    own: (folder) => `^${text(folder)}/lib/`,
    command: (place) => ({
      program: program(place.folder, 'mocha'),
      args: [
        '--no-experimental-strip-types',
        ...mochaWords,
        'test/helpers/*.ts',
        'test/unit/**/*.ts',
        'test/functional/**/*.ts',
      ],
      env: { ...linesEnv(place), TS_NODE_TRANSPILE_ONLY: 'true', NODE_ENV: 'test' },
    }),
    read: readLines,
    hasEnded: hasLastLine,
  },
  'node-redis': {
    ways,
    startsServers: true,
    // Its tests are next to its files, as `*.spec.ts`.
    own: (folder) => `^${text(folder)}/packages/(?!test-utils/)(?!.*(spec|test-utils)\\.ts$)`,
    command: (place) => ({
      program: program(place.folder, 'mocha'),
      args: ['-r', 'tsx', ...mochaWords, '--exit', './lib/**/*.spec.ts', '--redis-tag=7.0', '--redis-version=7.0'],
      env: linesEnv(place),
      cwd: join(place.folder, 'packages/client'),
    }),
    read: readLines,
    hasEnded: hasLastLine,
  },
  bullmq: {
    ways,
    port: 6379,
    packages: ['ioredis', 'redis'],
    command: (place) => ({
      program: program(place.folder, 'vitest'),
      args: ['run', '--no-file-parallelism', `--reporter=${inside('vitest-reporter.mjs')}`],
      env: linesEnv(place),
    }),
    read: readLines,
    hasEnded: hasLastLine,
  },
  hiredis: {
    ways: ['plain', 'proxy'],
    command: ({ folder, port }) => ({
      program: join(folder, 'hiredis-test'),
      args: ['-h', '127.0.0.1', '-p', String(port), '--skip-throughput'],
    }),
    read: (_, output) => readHiredis(output),
    hasEnded: (_, output) => /^(ALL TESTS PASSED|\*\*\* \d+ TESTS FAILED)/m.test(output),
  },
  'redis-tcl': {
    ways: ['plain', 'proxy'],
    command: ({ folder, port }) => ({
      program: join(folder, 'runtest'),
      args: [
        '--host',
        '127.0.0.1',
        '--port',
        String(port),
        '--singledb',
        '--clients',
        '1',
        '--tags',
        '-slow -needs:repl',
      ],
    }),
    read: (_, output) => readTcl(output),
    hasEnded: (_, output) => /^\s+The End$/m.test(output),
  },
  'redis-py': {
    ways: ['plain', 'proxy'],
    command: ({ results, port }) => ({
      program: 'python3',
      args: ['-m', 'pytest', 'tests', '-q', `--junitxml=${results}`, `--redis-url=redis://127.0.0.1:${port}/0`],
    }),
    read: readJunit,
    // pytest writes the file when all is over.
    hasEnded: (results) => results.includes('</testsuites>'),
  },
}
