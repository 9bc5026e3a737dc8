import {
  BufferArgs,
  type CommandRow,
  commandOf,
  commandOfArgs,
  firstKeyIndex,
  keysOf,
  ListArgs,
} from '@firebreak/core/commands'
import { ErrorReply, encodeCommand, RequestParser, type RespValue } from '@firebreak/core/resp'
import { expect } from 'vitest'
import { type Connection, plain } from './connection.ts'
import { ExampleArguments } from './example-arguments.ts'
import type { CommandInfo } from './server-commands.ts'

/** The table's row of a command as the server names it. */
export function rowOf(name: string): CommandRow | undefined {
  const [top, subcommand] = name.split('|')
  return commandOf(top!, subcommand)
}

/** Keys for which a server's flags say less, or more, than what the command does. */
const accessByHand: Record<string, 'read' | 'write'> = {
  // Only writes the cached count inside the value, which no reader can see.
  pfcount: 'read',
  // The stream's entries stay, but what the group has read and owes changes.
  xreadgroup: 'write',
}

/**
 * Makes argument lists for every command and compares the keys and what is done to them, by the table and by the
 * server's COMMAND GETKEYSANDFLAGS. Gives how many lists and keys were compared.
 */
export async function compareKeys(connection: Connection, infos: readonly CommandInfo[], listsPerCommand: number) {
  const compared = { lists: 0, keys: 0 }
  // An assertion for each of a few hundred thousand lists would take a minute.
  const wrong: object[] = []
  const lists = infos.filter(({ isContainer }) => !isContainer).flatMap((info) => examplesOf(info, listsPerCommand))
  for (let start = 0; start < lists.length; start += 4096) {
    const some = lists.slice(start, start + 4096)
    const replies = await Promise.all(some.map((list) => connection.call('COMMAND', 'GETKEYSANDFLAGS', ...list.args)))
    for (const [index, { name, args }] of some.entries()) {
      const expected = expectedKeys(name, args, replies[index]!)
      if (expected === undefined) continue
      const row = rowOf(name)!
      const wanted = JSON.stringify(expected)
      for (const keys of [keysFromList(row, args), keysFromBytes(row, args)]) {
        if (JSON.stringify(keys) !== wanted) wrong.push({ args, keys, expected })
      }
      compared.lists++
      compared.keys += expected.length
    }
  }
  expect(wrong.slice(0, 10)).toEqual([])
  return compared
}

function examplesOf(info: CommandInfo, count: number): { name: string; args: string[] }[] {
  const examples = new ExampleArguments(info.name.length * 7919 + info.name.charCodeAt(0))
  return Array.from({ length: count }, (_, turn) => ({
    name: info.name,
    args: [...info.name.split('|'), ...examples.make(info.arguments, turn % 2 === 1)],
  }))
}

/** The keys from the server's reply, or undefined if it cannot tell. */
function expectedKeys(name: string, args: readonly string[], reply: RespValue): unknown[] | undefined {
  if (reply instanceof ErrorReply) {
    // Some commands take fewer arguments than their documentation suggests.
    if (/number of arguments/.test(reply.text)) return undefined
    if (!/no key arguments|Invalid arguments/.test(reply.text)) return [reply.text]
    // Merging nothing is a valid command, but the server's own key rule requires a source.
    return name === 'pfmerge' && args.length === 2 ? [[args[1], 'write']] : []
  }
  return (plain(reply) as [string, string[]][]).map(([key, flags]) => [
    key,
    accessByHand[name] ?? (flags.includes('RO') ? 'read' : 'write'),
  ])
}

function keysFromList(row: CommandRow, list: readonly string[]): unknown[] {
  const args = new ListArgs(list.slice(1), list[0])
  if (commandOfArgs(args) !== row) return ['another row']
  const keys = keysOf(row, args)
  if (firstKeyIndex(row, args) !== (keys[0]?.index ?? 0)) return ['another first key']
  return keys.map(({ index, access }) => [args.at(index), access])
}

function keysFromBytes(row: CommandRow, list: readonly string[]): unknown[] {
  const parser = new RequestParser()
  const bytes = encodeCommand(list)
  if (parser.parse(bytes, 0, bytes.length) !== bytes.length) return ['not parsed']
  const args = new BufferArgs(parser)
  if (commandOfArgs(args) !== row) return ['another row']
  return keysOf(row, args).map(({ index, access }) => {
    const key = Buffer.from(parser.bytes.subarray(parser.startOf(index), parser.endOf(index))).toString()
    return [key, access]
  })
}
