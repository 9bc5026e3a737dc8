// Loaded before a suite (`node --import`): every Redis client that its tests make is protected, with every key hot.
import { appendFileSync, existsSync } from 'node:fs'
import Module, { createRequire } from 'node:module'
import { join } from 'node:path'
import { protect } from '@firebreak/client'
import { makeEveryKeyHot, strategies, sumOf } from './every-key-hot.mjs'

/** @type {{ way: keyof strategies, facts: string, folder: string, own?: string, packages: string[] }} */
const order = JSON.parse(process.env['FIREBREAK_SUITE'])
const clusters = new Map()
makeEveryKeyHot(strategies[order.way], (cluster, keys) => clusters.set(cluster, keys))

const facts = { clients: 0, refused: 0, warnings: [] }
const wrapped = new WeakMap()

function protectClient(client) {
  if (client === null || typeof client !== 'object') return client
  // Some factories promise their client.
  if (typeof client.then === 'function' && typeof client.sendCommand !== 'function') return client.then(protectClient)
  try {
    protect(client, {
      hubs: [],
      serviceId: 'suites',
      tableFile: false,
      onWarning: ({ kind }) => void (facts.warnings.includes(kind) || facts.warnings.push(kind)),
    })
    facts.clients++
  } catch ({ message }) {
    facts.refused++
    facts.warnings.push(message)
  }
  return client
}

// Pipelines send commands too, but connect to nothing.
function isClientClass(value) {
  const prototype = typeof value === 'function' ? value.prototype : undefined
  return typeof prototype?.sendCommand === 'function' && typeof prototype.connect === 'function'
}

const makers = new Set(['createClient', 'createCluster', 'createSentinel', 'createClientPool', 'create'])

/** Classes and factories of clients as ones that protect what they make; anything else as it is. */
function wrap(value, name) {
  if (typeof value !== 'function') return value
  const isClass = isClientClass(value)
  const isMaker = makers.has(name) || name === 'factory'
  if (!isClass && !isMaker) return value
  const known = wrapped.get(value)
  if (known !== undefined) return known
  const made = new Proxy(value, {
    construct: (target, args, newTarget) => protectClient(Reflect.construct(target, args, newTarget)),
    apply(target, self, args) {
      const result = Reflect.apply(target, self, args)
      return name === 'factory' ? wrapMaker(result) : protectClient(result)
    },
    get: (target, key) => (isClass ? wrapMember(target, key) : target[key]),
  })
  wrapped.set(value, made)
  return made
}

function wrapMaker(factory) {
  return (...args) => protectClient(factory(...args))
}

function wrapMember(target, key) {
  const own = Object.getOwnPropertyDescriptor(target, key)
  if (own?.configurable === false && own.writable === false) return target[key]
  return wrap(target[key], key)
}

function wrapExports(exports) {
  if ((typeof exports !== 'object' && typeof exports !== 'function') || exports === null) return exports
  if (isClientClass(exports)) return wrap(exports)
  const known = wrapped.get(exports)
  if (known !== undefined) return known
  const made = new Proxy(exports, { get: wrapMember })
  wrapped.set(exports, made)
  return made
}

// A library whose own tests run: what its files take from each other is theirs, what the tests take is protected.
if (order.own !== undefined) {
  const own = new RegExp(order.own)
  const load = Module._load
  Module._load = function (request, parent, ...rest) {
    const exports = load.call(this, request, parent, ...rest)
    if (parent?.filename === undefined || own.test(parent.filename)) return exports
    try {
      return own.test(Module._resolveFilename(request, parent)) ? wrapExports(exports) : exports
    } catch {
      return exports
    }
  }
}

// A suite of an application: its client libraries are loaded before it and take the place of themselves.
const require = createRequire(join(order.folder, 'package.json'))
for (const name of order.packages) {
  if (!existsSync(join(order.folder, 'node_modules', name))) continue
  const exports = require(name)
  const module = require.cache[require.resolve(name)]
  if (module !== undefined) module.exports = wrapExports(exports)
}

process.on('exit', () => {
  if (facts.clients + facts.refused > 0)
    appendFileSync(order.facts, `${JSON.stringify({ ...facts, ...sumOf(clusters) })}\n`)
})
