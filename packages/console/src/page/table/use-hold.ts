import { useRef, useState } from 'preact/hooks'

/**
 * Whether somebody has the pointer or the focus in the rows of a table, during which they keep their places. Nothing tells
 * that a pointer has left rows that are gone: a table that was empty holds nothing.
 */
export function useHold(isEmpty: boolean) {
  const [isHeld, setHeld] = useState(false)
  const order = useRef<readonly string[]>([])
  if (isEmpty && isHeld) setHeld(false)
  const props = {
    onMouseEnter: () => setHeld(true),
    onMouseLeave: () => setHeld(false),
    onFocusIn: () => setHeld(true),
    onFocusOut: () => setHeld(false),
  }
  return { isHeld: isHeld && !isEmpty, order, props }
}
