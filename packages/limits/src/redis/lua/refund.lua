-- Gives units back, once per request.
--
-- KEYS  the state; the mark of the request, if it has an id
-- ARGV  [1], [2] the time (see time.lua); [3] the algorithm; its parameters; the units; the request id or ''; how long
--       the mark stays, in ms
-- Returns { now, 1 if given back, 0 if this request already did that }, or { now } if it may not run now.
local algorithm = algorithms[ARGV[3]]
local p = parametersOf(algorithm, 4)
if algorithm.knows and not algorithm.knows(p) then return { now } end
local position = 3 + algorithm.parameters
local units, id, markMs = tonumber(ARGV[position + 1]), ARGV[position + 2], ARGV[position + 3]
if KEYS[2] and not call('SET', KEYS[2], '1', 'NX', 'PX', markMs) then return { now, 0 } end
local s = { key = KEYS[1] }
algorithm.open(s, p, algorithm.keepsStrings and takeBlock(s, s.key, call('GET', s.key)))
algorithm.refund(s, units, id)
algorithm.save(s)
return { now, 1 }
