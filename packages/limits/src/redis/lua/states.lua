-- How a limit's state is kept if it is a string, with the block of its key in front.
--
-- A block is '!' and two doubles: until when, and for how long. It stands in front of a state that is a string, or alone in
-- a key of its own. No state begins with '!'.
local sub, format = string.sub, string.format

-- The end of something that lasts a span, plus the furthest that the clock may step back (see step-back.ts).
local function absorbedEnd(stop, span)
  local latest = now + span
  if stop <= latest then return stop end
  return stop > latest + span and latest or min(stop, latest + 1)
end

-- How much of a step back is absorbed by a draining debt (see drain.ts).
local function absorbedDrain(back, debt, capacity, unit, rate)
  if back * rate > capacity then return 0 end
  return min(back, 1 + floor((2 * capacity - unit - debt) / rate))
end

local function packBlock(untilMs, forMs)
  return '!' .. pack('>dd', untilMs, forMs)
end

-- Splits the block from the value of a key: sets how much longer it lasts, and returns the state behind it. Keeps what the
-- clock has done to a block, and touches nothing else.
local function takeBlock(s, key, value)
  s.blocked, s.block = 0, ''
  if not value or byte(value) ~= 33 then return value end
  local untilMs, forMs = unpackNumbers('>dd', sub(value, 2, 17))
  local state = #value > 17 and sub(value, 18) or false
  if untilMs > now then
    -- A clock that stepped back does not make a block longer.
    local isMoved = untilMs > now + forMs
    if isMoved then untilMs = now + forMs end
    s.blocked, s.block = untilMs - now, packBlock(untilMs, forMs)
    if isMoved then call('SET', key, s.block .. (state or ''), 'KEEPTTL') end
  elseif state then
    -- It is over, and stays over if the clock steps back.
    call('SET', key, state, 'KEEPTTL')
  else
    call('DEL', key)
  end
  return state
end

-- Keeps a string state and the block before it, or removes the key if nothing is left to keep.
local function keep(s, value, forMs)
  if s.blocked > 0 then
    call('SET', s.key, forMs > 0 and s.block .. value or s.block, 'PX', max(forMs, s.blocked) + grace)
  elseif forMs > 0 then
    call('SET', s.key, value, 'PX', forMs + grace)
  else
    call('DEL', s.key)
  end
end
