import fc from 'fast-check'
import { expect, test } from 'vitest'
import { assemble } from './assemble-wasm.ts'

type Functions = Record<string, (...args: number[]) => number>

interface Runtime {
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (module: object) => { readonly exports: Functions & { memory: { buffer: ArrayBuffer } } }
}

const { Module, Instance } = (globalThis as unknown as { WebAssembly: Runtime }).WebAssembly

function made(functions: string, pages = 1) {
  return new Instance(new Module(assemble(`(module (memory (export "memory") ${pages}) ${functions})`))).exports
}

function evaluated(expression: string): number {
  return made(`(func (export "it") (result i32) ${expression})`).it!()
}

test('a loop with branches, locals and a result runs as it is written', () => {
  const { sum } = made(`
    (func (export "sum") (param $to i32) (result i32) (local $at i32) (local $all i32)
      (block $done (loop $next ;; from 0 on
        (br_if $done (i32.ge_u (local.get $at) (local.get $to)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (if (i32.and (local.get $at) (i32.const 1)) (then
          (br_if $done (i32.eqz (i32.sub (local.get $at) (i32.const 99))))
          (br $next)))
        (local.set $all (i32.add (local.get $all) (local.get $at)))
        (br $next)))
      (local.get $all))`)
  expect([sum!(0), sum!(1), sum!(10), sum!(1000)]).toEqual([0, 0, 30, 2450])
})

test('constants have their value, for signed and unsigned 32-bit numbers', () => {
  const edges = [0, 1, -1, 63, 64, -64, -65, 127, 128, 8191, 8192, 2 ** 31 - 1, -(2 ** 31), 2 ** 31, 2 ** 32 - 1]
  for (const value of edges) expect(evaluated(`(i32.const ${value})`)).toBe(value | 0)
  expect(evaluated('(i32.const 0x80000000)')).toBe(-(2 ** 31))
  fc.assert(
    fc.property(fc.maxSafeInteger(), (value) => {
      const low = `(i32.wrap_i64 (i64.const ${value}))`
      const high = `(i32.wrap_i64 (i64.shr_u (i64.const ${value}) (i64.extend_i32_u (i32.const 32))))`
      expect([evaluated(low), evaluated(high)]).toEqual([
        Number(BigInt.asIntN(32, BigInt(value))),
        Number(BigInt.asIntN(32, BigInt(value) >> 32n)),
      ])
    }),
  )
})

test('memory is read and written at an address and an offset, aligned or not', () => {
  const { memory, put, four } = made(
    `(func (export "put") (param $at i32) (param $value i32) (i32.store offset=65000 (local.get $at) (local.get $value)))
     (func (export "four") (param $at i32) (param $of i32) (result i32)
       (i32x4.bitmask (i32x4.eq (v128.load offset=4 (local.get $at)) (i32x4.splat (local.get $of)))))`,
    2,
  )
  expect(memory.buffer.byteLength).toBe(131_072)
  put!(3, 0x01020304)
  expect([...new Uint8Array(memory.buffer, 65_002, 6)]).toEqual([0, 4, 3, 2, 1, 0])
  new Int32Array(memory.buffer, 4, 4).set([7, 8, 7, 7])
  expect([four!(0, 7), four!(0, 8), four!(0, 9)]).toEqual([0b1101, 0b0010, 0])
})

test.each([
  ['(func (export "x") (i32.divide (i32.const 1)))', 'unknown instruction i32.divide'],
  ['(func (export "x") (local.get $y))', 'there is no "$y"'],
  ['(func (export "x") (block $out (br $in)))', 'there is no "$in"'],
  ['(func (export "x") (param $a f32))', 'there is no "f32"'],
  ['(func (export "x") (i32.const 1.5))', 'expected a whole number, found "1.5"'],
  ['(func (export "x") (if (i32.const 1)))', 'an if ends with its then'],
  ['(func (export "x") nop)', 'expected an instruction, found "nop"'],
  ['(table 1)', 'expected a function, found ["table","1"]'],
  ['(func (export "x")', 'a closing bracket is missing'],
  ['(func (export "x"))))', 'one closing bracket too many'],
])('%s is refused', (text, message) => {
  expect(() => assemble(`(module (memory (export "memory") 1) ${text})`)).toThrow(message)
})

test('anything but a module with a memory is refused', () => {
  expect(() => assemble('(func)')).toThrow('expected a module, found "func"')
  expect(() => assemble('(module)')).toThrow('a module must have one memory')
})
