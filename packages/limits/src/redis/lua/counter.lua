-- Two weighted windows (see counter.ts). State: the string 'start:before:current'. Parameters: limit, window in ms.
algorithms.counter = {
  parameters = 2,
  open = function(key, p)
    local s = { key = key, limit = p[1], window = p[2], before = 0, current = 0, dirty = false }
    s.into = now % s.window
    local value = redis.call('GET', key)
    if value then
      local start, before, current = string.match(value, '^(%d+):(%d+):(%d+)$')
      local passed = now - s.into - tonumber(start)
      if passed <= 0 then
        s.before, s.current, s.dirty = tonumber(before), tonumber(current), passed < 0
      elseif passed == s.window then
        s.before = tonumber(current)
      end
    end
    return s
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
    local value = whole(now - s.into) .. ':' .. whole(s.before) .. ':' .. whole(s.current)
    keep(s.key, value, algorithms.counter.reset(s))
  end,
}
