import type { ResolvedRespLimits } from './limits.ts'
import { marker } from './markers.ts'
import { RespError } from './resp-error.ts'
import { Attributed, MapReply, PushReply, type RespValue, SetReply } from './value.ts'

/** An aggregate whose items are still arriving. */
interface Frame {
  /** The marker of its type, or 0 for a value that is waiting to be wrapped with its attributes. */
  readonly type: number
  readonly items: RespValue[]
  /** The enclosing aggregate. */
  readonly outer: Frame | undefined
  /** Items to come; Infinity for a streamed aggregate, which ends with a dot. */
  remaining: number
}

/** The aggregates of a reply that have begun but not ended, with their items so far: a decoder's position. */
export class OpenAggregates {
  readonly #limits: ResolvedRespLimits
  readonly #keepsAttributes: boolean
  /** The innermost one, and how many there are. */
  #top: Frame | undefined
  #depth = 0

  constructor(limits: ResolvedRespLimits, keepsAttributes: boolean) {
    this.#limits = limits
    this.#keepsAttributes = keepsAttributes
  }

  get isEmpty(): boolean {
    return this.#top === undefined
  }

  /** Begins an aggregate, of Infinity items if it is streamed. Returns it at once if it is empty. */
  open(type: number, count: number): RespValue | undefined {
    const { maxElements, maxDepth } = this.#limits
    if (type === marker.push && this.#top !== undefined) {
      throw new RespError('FB_RESP_PROTOCOL', 'a push is nested inside another reply')
    }
    const items = type === marker.map || type === marker.attribute ? count * 2 : count
    if (items > maxElements && items !== Number.POSITIVE_INFINITY) throw tooManyElements(maxElements)
    if (this.#depth >= maxDepth) {
      throw new RespError('FB_RESP_TOO_DEEP', `aggregates are nested deeper than maxDepth, ${maxDepth}`)
    }
    this.#push(type, [], items)
    return items === 0 ? this.#close() : undefined
  }

  #push(type: number, items: RespValue[], remaining: number): void {
    this.#top = { type, items, remaining, outer: this.#top }
    this.#depth++
  }

  /** Adds a value to its aggregate and, if that is now complete, that one to its own; undefined while one is open. */
  place(value: RespValue): RespValue | undefined {
    let current: RespValue | undefined = value
    while (current !== undefined && this.#top !== undefined) {
      const frame: Frame = this.#top
      frame.items.push(current)
      if (--frame.remaining > 0) {
        // Only a streamed aggregate can grow past the bound; the others announced their count.
        if (frame.items.length > this.#limits.maxElements) throw tooManyElements(this.#limits.maxElements)
        return undefined
      }
      current = this.#close()
    }
    return current
  }

  /** The innermost aggregate, a streamed one, ends. */
  closeStreamed(): RespValue | undefined {
    const frame = this.#top
    const isPaired = frame?.type === marker.map || frame?.type === marker.attribute
    if (frame?.remaining !== Number.POSITIVE_INFINITY || (isPaired && frame.items.length % 2 === 1)) {
      throw new RespError('FB_RESP_PROTOCOL', 'unexpected end of a streamed aggregate')
    }
    return this.#close()
  }

  /** Pops the innermost aggregate; undefined if it is not a value by itself. */
  #close(): RespValue | undefined {
    const { type, items, outer } = this.#top!
    this.#top = outer
    this.#depth--
    switch (type) {
      case marker.map:
        return new MapReply(items)
      case marker.set:
        return new SetReply(items)
      case marker.push:
        return new PushReply(items)
      case marker.attribute:
        if (this.#keepsAttributes) this.#push(0, [new MapReply(items)], 1)
        return undefined
      case 0:
        return new Attributed(items[0] as MapReply, items[1]!)
      default:
        return items
    }
  }
}

function tooManyElements(maxElements: number): RespError {
  return new RespError('FB_RESP_TOO_LARGE', `an aggregate has more elements than maxElements, ${maxElements}`)
}
