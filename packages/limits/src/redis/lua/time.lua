-- The beginning of every script: what time it is.
--
-- ARGV[1]  the time in milliseconds, given by tests only; '' in production: then it is Redis' own
-- ARGV[2]  the latest time at which the call may still run, '' for any: a call that waited in a client's queue while
--          Redis was away has long been answered, and must not be charged when it arrives at last
--
-- Numbers are whole and at most 2^53, which doubles hold exactly. `tostring` and `..` would keep 14 digits of them, so
-- states are packed as doubles; as arguments of `redis.call` numbers keep 17 digits.

local call, byte = redis.call, string.byte
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local pack, unpackNumbers = struct.pack, struct.unpack

local given = ARGV[1]
local now
if given == '' then
  local time = call('TIME')
  now = time[1] * 1000 + floor(time[2] / 1000)
else
  now = tonumber(given)
end

-- Expiry only collects: what a key means is decided by the time in it. So keys stay a little longer than they mean
-- anything, and under a test's clock, which does not move with Redis' own, much longer.
local grace = given == '' and 1000 or 3600000

if ARGV[2] ~= '' and now > tonumber(ARGV[2]) then return { now } end
