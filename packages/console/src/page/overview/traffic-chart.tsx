import type { TrafficPoint } from '@firebreak/core'
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'

const height = 220

/** An area chart of reads served by Redis and from memory, stacked: the top edge is all reads. */
export function TrafficChart({ points }: { readonly points: readonly TrafficPoint[] }) {
  const place = useRef<HTMLDivElement>(null)
  const chart = useRef<uPlot | null>(null)

  useEffect(() => {
    const element = place.current!
    chart.current = new uPlot(chartOptions(element.clientWidth), stacked([]), element)
    const resize = new ResizeObserver(() => chart.current?.setSize({ width: element.clientWidth, height }))
    resize.observe(element)
    return () => {
      resize.disconnect()
      chart.current?.destroy()
    }
  }, [])

  useEffect(() => {
    chart.current?.setData(stacked(points))
  }, [points])

  return (
    <div class="chart" ref={place} role="img" aria-label="Reads a second served by Redis, by copies and from memory" />
  )
}

/** uPlot fills each series down to zero, so the largest sum is drawn first. */
function stacked(points: readonly TrafficPoint[]): uPlot.AlignedData {
  return [
    points.map(({ at }) => at / 1000),
    points.map(({ redis, copies, local }) => redis + copies + local),
    points.map(({ redis, copies }) => redis + copies),
    points.map(({ redis }) => redis),
  ]
}

function chartOptions(width: number): uPlot.Options {
  const style = getComputedStyle(document.documentElement)
  const color = (name: string) => style.getPropertyValue(name).trim()
  const axis = { stroke: color('--muted'), grid: { stroke: color('--line'), width: 1 }, ticks: { show: false } }
  const area = (label: string, name: string): uPlot.Series => ({
    label,
    stroke: color(name),
    fill: color(`${name}-soft`),
    width: 1.5,
    points: { show: false },
    value: (_, value) => (value === null ? '–' : `${Math.round(value).toLocaleString('en-US')}/s`),
  })
  return {
    width,
    height,
    cursor: { points: { show: false } },
    scales: { y: { range: (_, __, max) => [0, Math.max(10, max * 1.1)] } },
    axes: [axis, { ...axis, size: 64, values: (_, ticks) => ticks.map((tick) => tick.toLocaleString('en-US')) }],
    series: [
      {},
      area('all reads (memory on top)', '--local'),
      area('Redis and copies', '--copies'),
      area('Redis', '--redis'),
    ],
  }
}
