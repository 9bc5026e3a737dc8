import { BufferArgs, firstKeyIndex, keySlotOfBytes } from '@firebreak/core/commands'
import { encodeCommand, RequestParser } from '@firebreak/core/resp'
import type { ProxyClient, SharedRequest } from '../client/proxy-client.ts'
import type { ProxyCommand } from '../commands/proxy-command.ts'
import type { LaneUse, ReplyTarget, SharedLane } from '../upstream/shared-lane.ts'
import type { ClusterSettings } from '../upstream/upstream-topology.ts'
import { ClusterRequest } from './cluster-request.ts'
import { ClusterScan, scanSteps } from './cluster-scan.ts'
import { HeldBytes } from './held-bytes.ts'
import { JoinedReply, type JoinedSink, type JoinKind } from './joined-reply.ts'
import { KeysStream } from './keys-stream.ts'
import { LargeMget } from './large-mget.ts'
import { splitCursor } from './scan-cursor.ts'
import { keysOfParts, type SplitPart } from './split.ts'

const arrayType = 0x2a
const badCursor = Buffer.from('-ERR invalid cursor\r\n')

/** Sends one client's requests to chosen nodes: to one, or to several whose replies are joined. */
export class ClusterSender {
  readonly #client: ProxyClient
  readonly #settings: ClusterSettings
  /** The connections that the unanswered requests went over. */
  use: LaneUse = 'commands'

  constructor(client: ProxyClient, settings: ClusterSettings) {
    this.#client = client
    this.#settings = settings
  }

  /** Sends a request to the owner of a slot, or to any master if the slot is -1. */
  send(
    command: ProxyCommand,
    bytes: Uint8Array,
    slot: number,
    sink: ReplyTarget,
    tag: number,
    lane?: SharedLane,
  ): void {
    const client = this.#client
    const { topology, retryForMs } = this.#settings
    const { row } = command
    new ClusterRequest({
      runtime: client.host.runtime,
      topology,
      state: client.session.snapshot(),
      bytes,
      slot,
      use: this.use,
      commandId: command.id,
      nowMs: client.host.turn.nowMs,
      isRetrySafe: row !== undefined && (row.access === 'read' || row.flags.has('connection')),
      retryForMs,
      sink,
      tag,
      onDetour: () => client.waitForReplies(),
    }).send(lane)
  }

  /** Sends the parts of the current request. */
  sendParts(parts: readonly SplitPart[], kind: JoinKind, target: ReplyTarget): void {
    const client = this.#client
    const { command } = client.request
    const tag = client.slots.take()
    const ask = (some: readonly SplitPart[], whole: ReplyTarget) => {
      for (const [index, { slot, bytes }] of some.entries()) this.send(command, bytes, slot, whole, index)
    }
    const onOverflow = () => {
      client.slots.whenTurn(tag, () => new LargeMget({ client, keys: keysOfParts(parts), target, tag, ask }).goOn())
    }
    const joined = new JoinedReply(
      {
        kind,
        parts: parts.length,
        isWrite: command.isWrite,
        places: parts.map(({ places }) => places),
        held: kind === 'places' ? new HeldBytes(client) : undefined,
      },
      { ...joinedSink(target, tag), onOverflow },
    )
    ask(parts, joined)
  }

  /** Sends the current request to every master. */
  sendEverywhere(kind: JoinKind, target: ReplyTarget): void {
    const { request, slots, host } = this.#client
    const { homeSlots } = this.#settings.topology
    const { command } = request
    const bytes = request.copy()
    const joined = new JoinedReply(
      { kind, parts: homeSlots.length, isWrite: command.isWrite, random: host.runtime.random },
      joinedSink(target, slots.take()),
    )
    for (const [index, slot] of homeSlots.entries()) this.send(command, bytes, slot, joined, index)
  }

  /** Sends a request whose slot was taken earlier to the node of its key. */
  sendInto(
    slot: number,
    command: ProxyCommand,
    request: Uint8Array,
    target: ReplyTarget = this.#client,
    lane?: SharedLane,
  ): void {
    const parser = new RequestParser()
    parser.parse(request, 0, request.length)
    const index = firstKeyIndex(command.row!, new BufferArgs(parser))
    const hashSlot = keySlotOfBytes(request, parser.startOf(index), parser.endOf(index))
    this.send(command, request, hashSlot, target, slot, lane)
  }

  /** Sends a request with one key (its second word) that was merged from several clients. */
  sendFor(clients: ReadonlySet<ProxyClient>, { bytes, commandId, target, lane }: SharedRequest): void {
    const { host } = this.#client
    const { topology, retryForMs } = this.#settings
    const parser = new RequestParser()
    parser.parse(bytes, 0, bytes.length)
    new ClusterRequest({
      runtime: host.runtime,
      topology,
      state: lane.state,
      bytes,
      slot: keySlotOfBytes(bytes, parser.startOf(1), parser.endOf(1)),
      use: lane.use,
      commandId,
      nowMs: host.turn.nowMs,
      isRetrySafe: false,
      retryForMs,
      sink: target,
      tag: 0,
      onDetour: () => {
        for (const client of clients) client.waitForReplies()
      },
    }).send(lane)
  }

  keys(target: ReplyTarget): boolean {
    const client = this.#client
    if (client.slots.owed > 0) return client.waitForReplies()
    const slot = client.slots.take()
    const request = client.request.copy()
    const { topology, retryForMs } = this.#settings
    const stream = new KeysStream(
      { runtime: client.host.runtime, topology, state: client.session.snapshot(), request, retryForMs },
      {
        onPiece: (bytes, start, end, isLast) => {
          if (client.isClosed) stream.cancel()
          else
            target.onReply(
              slot,
              Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length),
              start,
              end,
              isLast,
              arrayType,
            )
        },
        onLost: (error) => target.onLost(slot, error, true),
        isBehind: () => client.isBehind(slot),
        whenCaughtUp: (callback) => client.whenCaughtUp(callback, slot),
      },
    )
    return true
  }

  scan(target: ReplyTarget): boolean {
    const client = this.#client
    const { command } = client.request
    const { homeSlots } = this.#settings.topology
    const args = client.request.list()
    const place = splitCursor(Buffer.from(args[1]!).toString('latin1'))
    if (place === undefined) {
      client.answerNow(badCursor)
      return true
    }
    const slot = client.slots.take()
    // Copied: the next node may be asked after the client's bytes are gone.
    const [name, , ...options] = args.map((argument) => Buffer.from(argument))
    const { count, stepOptions } = scanSteps(options)
    new ClusterScan({
      // Redis accepts any number as a cursor.
      node: place.node % homeSlots.length,
      nodeCount: homeSlots.length,
      count,
      maxBytes: client.host.maxOutputBytes,
      ask: (index, cursor, page) =>
        this.send(command, encodeCommand([name!, String(cursor), ...stepOptions]), homeSlots[index]!, page, 0),
      onReply: (reply) => target.onReply(slot, Buffer.from(reply), 0, reply.length, true, reply[0]!),
      onLost: (error, wasSent) => target.onLost(slot, error, wasSent),
    }).start(place.cursor)
    return true
  }
}

function joinedSink(target: ReplyTarget, tag: number): JoinedSink {
  return {
    answer: (reply) => target.onReply(tag, reply, 0, reply.length, true, reply[0]!),
    onLost: (error, wasSent) => target.onLost(tag, error, wasSent),
  }
}
