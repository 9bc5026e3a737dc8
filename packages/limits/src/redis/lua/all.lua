-- One call against several limits: all of them admit it and all are charged, or none is.
--
-- KEYS  for each limit its state and its block
-- ARGV  [1], [2] the time (see time.lua); then for each limit its algorithm, its parameters, the cost and the request id
-- Returns { now, then for each limit: 1 where it admits the call, level after it, ms until it does, ms until unused },
--       or { now } alone where the call may not run at this time.
local limits = {}
local position = 2
local isAdmitted = true
for index = 1, #KEYS, 2 do
  local limit = { algorithm = algorithms[ARGV[position + 1]], p = {} }
  for at = 1, limit.algorithm.parameters do limit.p[at] = tonumber(ARGV[position + 1 + at]) end
  position = position + 1 + limit.algorithm.parameters
  limit.cost, limit.id = tonumber(ARGV[position + 1]), ARGV[position + 2]
  position = position + 2
  if limit.algorithm.knows and not limit.algorithm.knows(limit.p) then return { now } end
  limits[#limits + 1] = limit
end

for index, limit in ipairs(limits) do
  limit.blocked = blockedMs(KEYS[index * 2])
  limit.s = limit.algorithm.open(KEYS[index * 2 - 1], limit.p)
  limit.fits = limit.blocked == 0 and (limit.cost == 0 or limit.algorithm.fit(limit.s, limit.cost) >= 1)
  isAdmitted = isAdmitted and limit.fits
end

local reply = { now }
for _, limit in ipairs(limits) do
  local algorithm, s = limit.algorithm, limit.s
  if isAdmitted and limit.cost > 0 then algorithm.charge(s, limit.cost, limit.id) end
  reply[#reply + 1] = limit.fits and 1 or 0
  reply[#reply + 1] = limit.blocked > 0 and -1 or algorithm.level(s)
  reply[#reply + 1] = limit.fits and 0 or limit.blocked > 0 and limit.blocked or algorithm.retry(s, limit.cost)
  reply[#reply + 1] = limit.blocked > 0 and limit.blocked or algorithm.reset(s)
  algorithm.save(s)
end
return reply
