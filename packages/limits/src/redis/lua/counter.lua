-- Two weighted windows (see counter.ts). State: the doubles start, before, current. Parameters: limit, window in ms.
algorithms.counter = {
  parameters = 2,
  keepsStrings = true,
  open = function(s, p, value)
    s.limit, s.window, s.before, s.current, s.dirty = p[1], p[2], 0, 0, false
    s.into = now % s.window
    if value then
      local start, before, current = unpackNumbers('>ddd', value)
      local passed = now - s.into - start
      if passed <= 0 then
        s.before, s.current, s.dirty = before, current, passed < 0
      elseif passed == s.window then
        s.before = current
      end
    end
  end,
  used = function(s) return s.before * (s.window - s.into) + s.current * s.window end,
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
    if s.current > 0 then return 2 * s.window - s.into end
    return s.before > 0 and s.window - s.into or 0
  end,
  retry = function(s, cost)
    if cost > s.limit then return -1 end
    local capacity, atEdge, untilEdge = s.limit * s.window, (s.current + cost) * s.window, s.window - s.into
    if atEdge <= capacity then return ceil((s.before * untilEdge + atEdge - capacity) / s.before) end
    return untilEdge + ceil((atEdge - capacity) / s.current)
  end,
  save = function(s)
    if not s.dirty then return end
    keep(s, pack('>ddd', now - s.into, s.before, s.current), algorithms.counter.reset(s))
  end,
}
