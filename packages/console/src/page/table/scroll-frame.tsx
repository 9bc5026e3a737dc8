import type { ComponentChildren } from 'preact'

interface ScrollFrameProps {
  readonly label: string
  readonly name?: string
  readonly children: ComponentChildren
}

/**
 * Holds a table that may be wider than the page. It has a name and can be focused, for scrolling with the keyboard, but
 * is not a landmark.
 */
export function ScrollFrame({ label, name, children }: ScrollFrameProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no pointer scrolls a wide table by keys.
    <div class={name === undefined ? 'scroll' : `scroll ${name}`} role="group" aria-label={label} tabIndex={0}>
      {children}
    </div>
  )
}
