import { ByteWriter } from './byte-writer.ts'
import { marker } from './markers.ts'
import { utf8Length } from './text.ts'
import {
  Attributed,
  BigNumber,
  Double,
  ErrorReply,
  MapReply,
  PushReply,
  type RespValue,
  SetReply,
  Verbatim,
} from './value.ts'

/** The version of RESP that a connection speaks. */
export type RespVersion = 2 | 3

/**
 * Encodes a reply the way a server sends it.
 *
 * For RESP2, each value becomes what Redis makes of it: a map becomes a flat array; a set or push an array; a double,
 * big number or verbatim string a bulk string; a boolean 1 or 0; null the null bulk string. Attributes are dropped.
 */
export function encodeReply(value: RespValue, version: RespVersion): Uint8Array {
  const writer = new ByteWriter()
  writeReply(writer, value, version)
  return writer.take()
}

/** Appends a reply to a writer, for several replies in one piece. */
export function writeReply(writer: ByteWriter, value: RespValue, version: RespVersion): void {
  if (typeof value === 'string') writeLine(writer, marker.simple, value)
  else if (value instanceof Uint8Array) writeBulk(writer, marker.bulk, value)
  else if (typeof value === 'number') writeNumber(writer, value, version)
  else if (typeof value === 'bigint') writeHead(writer, marker.integer, value)
  else if (value === null) writer.text(version === 3 ? '_\r\n' : '$-1\r\n')
  else if (typeof value === 'boolean')
    writer.text(version === 3 ? (value ? '#t\r\n' : '#f\r\n') : `:${value ? 1 : 0}\r\n`)
  else if (value instanceof ErrorReply) writeError(writer, value, version)
  else if (value instanceof Double) writeScalar(writer, marker.double, doubleText(value.value), version)
  else if (value instanceof BigNumber) writeScalar(writer, marker.bigNumber, String(value.value), version)
  else if (value instanceof Verbatim) writeVerbatim(writer, value, version)
  else if (value instanceof MapReply) {
    if (version === 3) writeItems(writer, marker.map, value.items.length / 2, value.items, version)
    else writeItems(writer, marker.array, value.items.length, value.items, version)
  } else if (value instanceof SetReply) {
    writeItems(writer, version === 3 ? marker.set : marker.array, value.items.length, value.items, version)
  } else if (value instanceof PushReply) {
    writeItems(writer, version === 3 ? marker.push : marker.array, value.items.length, value.items, version)
  } else if (value instanceof Attributed) {
    const { items } = value.attributes
    if (version === 3) writeItems(writer, marker.attribute, items.length / 2, items, version)
    writeReply(writer, value.value, version)
  } else writeItems(writer, marker.array, value.length, value, version)
}

function writeHead(writer: ByteWriter, type: number, count: number | bigint): void {
  writer.byte(type)
  writer.text(`${count}\r\n`)
}

function writeItems(
  writer: ByteWriter,
  type: number,
  count: number,
  items: readonly RespValue[],
  version: RespVersion,
): void {
  writeHead(writer, type, count)
  for (const item of items) writeReply(writer, item, version)
}

function writeBulk(writer: ByteWriter, type: number, bytes: Uint8Array): void {
  writeHead(writer, type, bytes.length)
  writer.bytes(bytes)
  writer.text('\r\n')
}

function writeBulkText(writer: ByteWriter, text: string): void {
  writer.text(`$${utf8Length(text)}\r\n${text}\r\n`)
}

// A line cannot contain a line end: such a string goes as a bulk string, which every client accepts in its place.
function writeLine(writer: ByteWriter, type: number, text: string): void {
  if (/[\r\n]/.test(text)) writeBulkText(writer, text)
  else {
    writer.byte(type)
    writer.text(`${text}\r\n`)
  }
}

function writeNumber(writer: ByteWriter, value: number, version: RespVersion): void {
  if (Number.isInteger(value)) writeHead(writer, marker.integer, BigInt(value))
  else writeScalar(writer, marker.double, doubleText(value), version)
}

function writeScalar(writer: ByteWriter, type: number, text: string, version: RespVersion): void {
  if (version === 3) writeLine(writer, type, text)
  else writeBulkText(writer, text)
}

function doubleText(value: number): string {
  if (Number.isNaN(value)) return 'nan'
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf'
  return Object.is(value, -0) ? '-0' : String(value)
}

function writeError(writer: ByteWriter, { text }: ErrorReply, version: RespVersion): void {
  if (!/[\r\n]/.test(text)) writeLine(writer, marker.error, text)
  else if (version === 3) writer.text(`!${utf8Length(text)}\r\n${text}\r\n`)
  else writeLine(writer, marker.error, text.replace(/[\r\n]+/g, ' '))
}

function writeVerbatim(writer: ByteWriter, { format, bytes }: Verbatim, version: RespVersion): void {
  if (version === 2) writeBulk(writer, marker.bulk, bytes)
  else {
    writer.text(`=${bytes.length + 4}\r\n${format}:`)
    writer.bytes(bytes)
    writer.text('\r\n')
  }
}
