-- A count per window: fixed windows aligned to the epoch, windows from the first hit, and calendar windows.
-- State: the doubles end, count.
-- Parameters: limit, window in ms (0 if calendar boundaries follow), anchor (0 the epoch, 1 the first hit),
-- and three calendar boundaries: two windows, one of which must contain the present.
algorithms.window = {
  parameters = 6,
  keepsStrings = true,
  open = function(s, p, value)
    s.limit, s.count, s.dirty = p[1], 0, false
    local length = p[2]
    if length == 0 then
      -- Redis knows no time zones: the client sends the boundaries, and Redis' clock decides which window is current.
      s.stop = now < p[5] and p[5] or p[6]
      length = s.stop - (now < p[5] and p[4] or p[5])
    elseif p[3] == 1 then
      s.stop = now + p[2]
    else
      s.stop = now - now % p[2] + p[2]
    end
    if value then
      local stop, count = unpackNumbers('>dd', value)
      if now < stop then
        s.count, s.stop = count, absorbedEnd(stop, length)
        s.dirty = s.stop < stop
      end
    end
  end,
  -- False if the present is outside the client's boundaries: nothing was done, and the client asks again.
  knows = function(p) return p[2] ~= 0 or (now >= p[4] and now < p[6]) end,
  fit = function(s, cost) return floor((s.limit - s.count) / cost) end,
  charge = function(s, units)
    s.count = s.count + units
    s.dirty = true
  end,
  refund = function(s, units)
    s.count = max(0, s.count - units)
    s.dirty = true
  end,
  level = function(s) return s.count end,
  reset = function(s) return s.count > 0 and s.stop - now or 0 end,
  retry = function(s, cost)
    if cost > s.limit then return -1 end
    return s.stop - now
  end,
  save = function(s)
    if s.dirty then keep(s, pack('>dd', s.stop, s.count), s.count > 0 and s.stop - now or 0) end
  end,
}
