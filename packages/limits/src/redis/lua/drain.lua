-- The draining debt: token bucket, leaky bucket, leaky queue, GCRA (see drain-plan.ts).
-- State: the doubles at, debt. Parameters: capacity, unit, rate.
algorithms.drain = {
  parameters = 3,
  keepsStrings = true,
  open = function(s, p, value)
    s.capacity, s.unit, s.rate, s.debt, s.at, s.dirty = p[1], p[2], p[3], 0, now, false
    if value then
      local at, debt = unpackNumbers('>dd', value)
      if now < at then
        s.at = now + absorbedDrain(at - now, debt, s.capacity, s.unit, s.rate)
        s.debt, s.dirty = debt, s.at < at
      else
        s.debt = max(0, debt - (now - at) * s.rate)
      end
    end
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
  reset = function(s) return s.debt > 0 and s.at - now + ceil(s.debt / s.rate) or 0 end,
  retry = function(s, cost)
    if cost * s.unit > s.capacity then return -1 end
    return s.at - now + ceil((s.debt + cost * s.unit - s.capacity) / s.rate)
  end,
  save = function(s)
    if s.dirty then keep(s, pack('>dd', s.at, s.debt), algorithms.drain.reset(s)) end
  end,
}
