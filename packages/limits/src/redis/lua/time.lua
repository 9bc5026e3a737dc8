-- The beginning of every script: what time it is.
--
-- ARGV[1]  the time in milliseconds, given by tests only; '' in production: then it is Redis' own
-- ARGV[2]  the latest time at which the call may still run, '' for any: a call that waited in a client's queue while
--          Redis was away has long been answered, and must not be charged when it arrives at last
--
-- Numbers are whole and at most 2^53, which doubles hold exactly. `tostring` and `..` would keep 14 digits of them, so
-- states are packed as doubles; as arguments of `redis.call` numbers keep 17 digits.

local call, byte, sub, format = redis.call, string.byte, string.sub, string.format

local given = ARGV[1]
local now
if given == '' then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
else
  now = tonumber(given)
end

-- Expiry only collects: what a key means is decided by the time in it. So keys stay a little longer than they mean
-- anything, and under a test's clock, which does not move with Redis' own, much longer.
local grace = given == '' and 1000 or 3600000

if ARGV[2] ~= '' and now > tonumber(ARGV[2]) then return { now } end

local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

local pack, unpackNumbers = struct.pack, struct.unpack

-- A block is '!' and two doubles, until and for how long, before the state of a key whose state is a string, or alone
-- at a key of its own. No state begins with '!'.
local function packBlock(untilMs, forMs)
  return '!' .. pack('>dd', untilMs, forMs)
end

-- Takes the block off a value: sets how much longer it lasts, and gives the state behind it.
local function takeBlock(s, value)
  s.blocked, s.block, s.blockMoved = 0, '', false
  if not value or byte(value) ~= 33 then return value end
  local untilMs, forMs = unpackNumbers('>dd', sub(value, 2, 17))
  -- A clock that stepped back makes no block longer.
  s.blockMoved = untilMs > now + forMs
  untilMs = min(untilMs, now + forMs)
  if untilMs > now then s.blocked, s.block = untilMs - now, packBlock(untilMs, forMs) end
  return #value > 17 and sub(value, 18) or false
end

-- Keeps a string state and the block before it, or removes it where nothing is left to keep.
local function keep(s, value, forMs)
  if s.blocked > 0 then
    call('SET', s.key, forMs > 0 and s.block .. value or s.block, 'PX', max(forMs, s.blocked) + grace)
  elseif forMs > 0 then
    call('SET', s.key, value, 'PX', forMs + grace)
  else
    call('DEL', s.key)
  end
end

-- Every algorithm is a table of functions over a state `s`:
--   open(s, p, value)       reads the state of s.key into s; p are the parameters, value the state where it is a string
--   fit(s, cost)            how many calls of this cost are admitted now
--   charge(s, units, id), refund(s, units, id)
--   level(s)                what is used, for the answer
--   reset(s), retry(s, cost)  in milliseconds
--   save(s)                 writes what changed, with its expiry
-- and of: parameters (how many), named (its calls carry request ids), keepsStrings (its states are strings).
local algorithms = {}

-- The parameters of an algorithm, from ARGV[first] on.
local function parametersOf(algorithm, first)
  local p = {}
  for index = 1, algorithm.parameters do p[index] = tonumber(ARGV[first + index - 1]) end
  return p
end

-- Opens the limit whose keys begin at KEYS[index]: its state, and its block where that is not within the state.
-- `values` are those of KEYS. Gives the index after its keys.
local function openLimit(s, algorithm, p, index, values)
  s.key = KEYS[index]
  if algorithm.keepsStrings then
    algorithm.open(s, p, takeBlock(s, values[index]))
    s.dirty = s.dirty or s.blockMoved
    return index + 1
  end
  takeBlock(s, values[index + 1])
  if s.blockMoved then call('SET', KEYS[index + 1], s.block, 'PX', s.blocked + grace) end
  algorithm.open(s, p)
  return index + 2
end
