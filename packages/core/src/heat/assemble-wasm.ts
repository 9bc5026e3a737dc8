/**
 * Builds a WebAssembly module from text: the part of the text format that our few loops use, in folded form, with one
 * memory and exported functions.
 *
 *     (module (memory (export "memory") 1)
 *       (func (export "sum") (param $a i32) (param $b i32) (result i32) (i32.add (local.get $a) (local.get $b))))
 *
 * `block` and `loop` have a label and no result; `if` has a `then` and nothing else. Anything else is refused by name,
 * so a typo is found when the module is built, not when it runs.
 */
export function assemble(text: string): Uint8Array {
  const [kind, ...fields] = parse(text)
  if (kind !== 'module') throw new Error(`expected a module, found ${show(kind)}`)
  const memory = fields.find((field) => Array.isArray(field) && field[0] === 'memory')
  const functions = fields.filter((field) => field !== memory).map(functionOf)
  if (!Array.isArray(memory)) throw new Error('a module must have one memory')
  const pages = numberOf(memory.at(-1))
  const exported = [
    { name: exportOf(memory), kind: 2, index: 0 },
    ...functions.map(({ name }, index) => ({ name, kind: 0, index })),
  ]
  return Uint8Array.from([
    ...magic,
    ...section(1, vector(functions.map(({ type }) => type))),
    ...section(3, vector(functions.map((_, index) => unsigned(index)))),
    ...section(5, vector([[1, ...unsigned(pages), ...unsigned(pages)]])),
    ...section(7, vector(exported.map(({ name, kind, index }) => [...nameOf(name), kind, ...unsigned(index)]))),
    ...section(10, vector(functions.map(({ body }) => [...unsigned(body.length), ...body]))),
  ])
}

type Node = string | Node[]

const magic = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]
const end = 0x0b
const noResult = 0x40

const types: Readonly<Record<string, number>> = { i32: 0x7f, i64: 0x7e, v128: 0x7b }

/** Instructions that only take the operands before them. */
const plain: Readonly<Record<string, readonly number[]>> = {
  'i32.eqz': [0x45],
  'i32.lt_s': [0x48],
  'i32.ge_s': [0x4e],
  'i32.ge_u': [0x4f],
  'i32.ctz': [0x68],
  'i32.add': [0x6a],
  'i32.sub': [0x6b],
  'i32.mul': [0x6c],
  'i32.and': [0x71],
  'i32.or': [0x72],
  'i32.xor': [0x73],
  'i32.shl': [0x74],
  'i32.shr_u': [0x76],
  'i32.rotl': [0x77],
  'i64.and': [0x83],
  'i64.shr_u': [0x88],
  'i32.wrap_i64': [0xa7],
  'i64.extend_i32_u': [0xad],
  'i32x4.splat': [0xfd, 0x11],
  'i32x4.eq': [0xfd, 0x37],
  'i32x4.bitmask': [0xfd, 0xa4, 0x01],
}

/** Memory loads and stores; `offset=…` is added to the address, and no address has to be aligned. */
const accesses: Readonly<Record<string, readonly number[]>> = {
  'i32.load': [0x28],
  'i64.load': [0x29],
  'i32.store': [0x36],
  'v128.load': [0xfd, 0x00],
}

const constants: Readonly<Record<string, number>> = { 'i32.const': 0x41, 'i64.const': 0x42 }
const locals: Readonly<Record<string, number>> = { 'local.get': 0x20, 'local.set': 0x21 }
const branches: Readonly<Record<string, number>> = { br: 0x0c, br_if: 0x0d }
const blocks: Readonly<Record<string, number>> = { block: 0x02, loop: 0x03 }

function functionOf(field: Node): { readonly name: string; readonly type: number[]; readonly body: number[] } {
  if (!Array.isArray(field) || field[0] !== 'func') throw new Error(`expected a function, found ${show(field)}`)
  const parts = field.slice(1)
  const named = (kind: string) => parts.filter((part): part is Node[] => Array.isArray(part) && part[0] === kind)
  const [params, results, own] = [named('param'), named('result'), named('local')]
  const names = new Map([...params, ...own].map(([, name], index) => [textOf(name), index]))
  const heads = new Set<Node>([...named('export'), ...params, ...results, ...own])
  const code = parts.filter((part) => !heads.has(part)).flatMap((part) => instruction(part, names, []))
  const declared = vector(own.map(([, , type]) => [1, typeOf(type)]))
  const typesOf = (list: readonly Node[][]) => vector(list.map((part) => [typeOf(part.at(-1))]))
  return {
    name: exportOf(field),
    type: [0x60, ...typesOf(params), ...typesOf(results)],
    body: [...declared, ...code, end],
  }
}

/** `labels` are those of the enclosing blocks, innermost first. */
function instruction(node: Node, names: ReadonlyMap<string, number>, labels: readonly string[]): number[] {
  if (!Array.isArray(node)) throw new Error(`expected an instruction, found ${show(node)}`)
  const name = textOf(node[0])
  const rest = node.slice(1)
  const inner = (list: readonly Node[], within = labels) => list.flatMap((part) => instruction(part, names, within))
  if (name in blocks) {
    const [label, ...body] = rest
    return [blocks[name]!, noResult, ...inner(body, [textOf(label), ...labels]), end]
  }
  if (name === 'if') {
    const then = rest.at(-1)
    if (!Array.isArray(then) || then[0] !== 'then') throw new Error('an if ends with its then')
    return [...inner(rest.slice(0, -1)), 0x04, noResult, ...inner(then.slice(1), ['', ...labels]), end]
  }
  if (name in accesses) {
    const offset = typeof rest[0] === 'string' ? rest[0].replace('offset=', '') : undefined
    return [
      ...inner(offset === undefined ? rest : rest.slice(1)),
      ...accesses[name]!,
      0,
      ...unsigned(numberOf(offset ?? '0')),
    ]
  }
  if (name in plain) return [...inner(rest), ...plain[name]!]
  const [subject, ...operands] = rest
  const code = inner(operands)
  if (name in constants) return [constants[name]!, ...signed(numberOf(subject), name.startsWith('i32'))]
  if (name in locals) return [...code, locals[name]!, ...unsigned(known(names.get(textOf(subject)), subject))]
  if (name in branches) {
    const depth = labels.indexOf(textOf(subject))
    return [...code, branches[name]!, ...unsigned(known(depth < 0 ? undefined : depth, subject))]
  }
  throw new Error(`unknown instruction ${name}`)
}

function parse(text: string): Node[] {
  const open: Node[][] = [[]]
  for (const [token] of text.replace(/;;.*/g, '').matchAll(/[()]|"[^"]*"|[^\s()]+/g)) {
    if (token === '(') open.push([])
    else if (token !== ')') open.at(-1)!.push(token)
    else {
      const done = open.pop()!
      if (open.length === 0) throw new Error('one closing bracket too many')
      open.at(-1)!.push(done)
    }
  }
  const [whole] = open[0]!
  if (open.length > 1 || !Array.isArray(whole)) throw new Error('a closing bracket is missing')
  return whole
}

function exportOf(field: Node[]): string {
  const found = field.find((part) => Array.isArray(part) && part[0] === 'export')
  return textOf(found?.[1]).slice(1, -1)
}

function typeOf(node: Node | undefined): number {
  return known(types[textOf(node)], node)
}

function textOf(node: Node | undefined): string {
  if (typeof node !== 'string') throw new Error(`expected a word, found ${show(node)}`)
  return node
}

function numberOf(node: Node | undefined): number {
  const number = Number(textOf(node))
  if (!Number.isSafeInteger(number)) throw new Error(`expected a whole number, found ${show(node)}`)
  return number
}

function known<T>(value: T | undefined, node: Node | undefined): T {
  if (value === undefined) throw new Error(`there is no ${show(node)}`)
  return value
}

function show(node: Node | undefined): string {
  return JSON.stringify(node) ?? 'nothing'
}

function section(id: number, content: readonly number[]): number[] {
  return [id, ...unsigned(content.length), ...content]
}

function vector(items: readonly (readonly number[])[]): number[] {
  return [...unsigned(items.length), ...items.flat()]
}

function nameOf(name: string): number[] {
  return [...unsigned(name.length), ...Array.from(name, (letter) => letter.charCodeAt(0))]
}

/** LEB128. */
function unsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(Math.floor(value / 0x80))]
}

/** Signed LEB128. A constant of 32 bits may be written as signed or unsigned. */
function signed(value: number, isWord: boolean): number[] {
  const number = isWord ? value | 0 : value
  const low = ((number % 0x80) + 0x80) % 0x80
  const rest = (number - low) / 0x80
  const isLast = (rest === 0 && low < 0x40) || (rest === -1 && low >= 0x40)
  return isLast ? [low] : [low | 0x80, ...signed(rest, false)]
}
