-- Two weighted windows (see counter.ts). State: the doubles start, before, current. Parameters: limit, window in ms.
algorithms.counter = {
  parameters = 2,
  keepsStrings = true,
  open = function(s, p, value)
    s.limit, s.window, s.before, s.current, s.dirty = p[1], p[2], 0, 0, false
    s.start = now - now % s.window
    if value then
      local start, before, current = unpackNumbers('>ddd', value)
      local passed = now - start
      if before == 0 and current == 0 then return end
      if passed < 0 then
        s.start = absorbedEnd(start + s.window, s.window) - s.window
        s.before, s.current, s.dirty = before, current, s.start < start
      elseif passed < s.window then
        s.start, s.before, s.current = start, before, current
      elseif passed < 2 * s.window and current > 0 then
        s.start, s.before = start + s.window, current
      end
    end
  end,
  used = function(s) return s.before * (s.window - max(0, now - s.start)) + s.current * s.window end,
  fit = function(s, cost) return floor((s.limit * s.window - algorithms.counter.used(s)) / (cost * s.window)) end,
  charge = function(s, units)
    s.current = s.current + units
    s.dirty = true
  end,
  refund = function(s, units)
    s.before = max(0, s.before - max(0, units - s.current))
    s.current = max(0, s.current - units)
    s.dirty = true
  end,
  level = function(s) return algorithms.counter.used(s) end,
  reset = function(s)
    if s.current > 0 then return s.start + 2 * s.window - now end
    return s.before > 0 and s.start + s.window - now or 0
  end,
  retry = function(s, cost)
    if cost > s.limit then return -1 end
    local capacity, atEdge, untilEdge = s.limit * s.window, (s.current + cost) * s.window, s.start + s.window - now
    if atEdge <= capacity then return ceil((s.before * untilEdge + atEdge - capacity) / s.before) end
    return untilEdge + ceil((atEdge - capacity) / s.current)
  end,
  save = function(s)
    if not s.dirty then return end
    keep(s, pack('>ddd', s.start, s.before, s.current), algorithms.counter.reset(s))
  end,
}
