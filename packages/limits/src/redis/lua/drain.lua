-- The draining debt: token bucket, leaky bucket, leaky queue, GCRA (see drain-plan.ts).
-- State: the string 'at:debt'. Parameters: capacity, unit, rate.
algorithms.drain = {
  parameters = 3,
  open = function(key, p)
    local s = { key = key, capacity = p[1], unit = p[2], rate = p[3], at = now, debt = 0, dirty = false }
    local value = redis.call('GET', key)
    if value then
      local at, debt = string.match(value, '^(%d+):(%d+)$')
      at, s.debt = tonumber(at), tonumber(debt)
      if now < at then
        s.dirty = true
      else
        s.debt = max(0, s.debt - (now - at) * s.rate)
      end
    end
    return s
  end,
  fit = function(s, cost) return floor((s.capacity - s.debt) / (cost * s.unit)) end,
  charge = function(s, units)
    s.debt = s.debt + units * s.unit
    s.dirty = true
  end,
  refund = function(s, units)
    s.debt = max(0, s.debt - units * s.unit)
    s.dirty = true
  end,
  level = function(s) return s.debt end,
  reset = function(s) return ceil(s.debt / s.rate) end,
  retry = function(s, cost)
    if cost * s.unit > s.capacity then return -1 end
    return ceil((s.debt + cost * s.unit - s.capacity) / s.rate)
  end,
  save = function(s)
    if s.dirty then keep(s.key, whole(s.at) .. ':' .. whole(s.debt), ceil(s.debt / s.rate)) end
  end,
}
